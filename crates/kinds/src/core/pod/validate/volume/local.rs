//! Volumes on the node, and those that drivers attach to it.

use std::collections::BTreeMap;

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1123_subdomain;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{
    CSIVolumeSource, EmptyDirVolumeSource, FlexVolumeSource, HostPathVolumeSource,
    PersistentVolumeClaimVolumeSource,
};

use super::super::{path, validate_enum, validate_required};
use crate::strategy::Errors;
use crate::validate::resources::read;

const DRIVER: usize = 63;

pub(super) fn validate_empty_dir(
    source: &EmptyDirVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let limit: Option<Quantity> = source.size_limit.as_ref().map(read);
    if limit.is_some_and(|limit| limit.signum() < 0) {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&at.field("sizeLimit"), detail));
    }
}

pub(super) fn validate_host_path(
    source: &HostPathVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if source.path.is_empty() {
        errors.push(FieldError::required(&at.field("path"), ""));
        return;
    }

    path::validate_no_backsteps(&source.path, &at.field("path"), errors);

    if let Some(of) = &source.type_ {
        let known = [
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ];
        validate_enum(of, &known, &at.field("type"), errors);
    }
}

pub(super) fn validate_claim(
    source: &PersistentVolumeClaimVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.claim_name, &at.field("claimName"), errors);
}

pub(super) fn validate_flex_volume(source: &FlexVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&source.driver, &at.field("driver"), errors);
    validate_flex_options(source.options.as_ref(), at, errors);
}

/// Validates that no option has a key of Kubernetes' own.
pub(super) fn validate_flex_options(
    options: Option<&BTreeMap<String, String>>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for key in options.into_iter().flat_map(BTreeMap::keys) {
        let domain = format!(
            ".{}",
            key.split('/').next().unwrap_or_default().to_lowercase()
        );

        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid_str(
                &at.field("options").key(key),
                key,
                detail,
            ));
        }
    }
}

pub(super) fn validate_csi(source: &CSIVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_driver(&source.driver, &at.field("driver"), errors);
    if let Some(secret) = &source.node_publish_secret_ref {
        match secret.name.as_str() {
            "" => errors.push(FieldError::required(
                &at.field("nodePublishSecretRef").field("name"),
                "",
            )),
            name => refuse(&at.field("name"), name, dns1123_subdomain(name), errors),
        }
    }
}

/// Validates the name of a CSI driver, which may have upper-case letters.
pub(crate) fn validate_driver(name: &str, at: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(at, ""));
        return;
    }
    if name.len() > DRIVER {
        errors.push(FieldError::too_long(at, DRIVER));
    }
    refuse(at, name, dns1123_subdomain(&name.to_lowercase()), errors);
}
