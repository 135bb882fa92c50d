//! `configSource` of a node: no longer used, but validated where it is still set.

use coracle_api::field_error::FieldError;
use coracle_api::{Path, names};
use k8s_openapi::api::core::v1::{ConfigMapNodeConfigSource, NodeConfigSource, NodeConfigStatus};

use crate::strategy::Errors;
use crate::validate::{internal, text, validate_required};

/// Validates the configured source, which names no particular version of it.
pub(super) fn validate_wanted(source: &NodeConfigSource, at: &Path<'_>, errors: &mut Errors) {
    if let Some(map) = &source.config_map {
        let at = at.field("configMap");
        let named = [
            ("uid", &map.uid),
            ("resourceVersion", &map.resource_version),
        ];

        for (name, _) in named
            .into_iter()
            .filter(|(_, found)| !text(found).is_empty())
        {
            errors.push(FieldError::forbidden(
                &at.field(name),
                format!("{name} must not be set in spec"),
            ));
        }

        validate_map(map, &at, errors);
    }

    validate_presence(source, at, errors);
}

/// Validates the sources that are in use.
pub(super) fn validate_status(status: &NodeConfigStatus, at: &Path<'_>, errors: &mut Errors) {
    let sources = [
        ("assigned", &status.assigned),
        ("active", &status.active),
        ("lastKnownGood", &status.last_known_good),
    ];

    for (name, source) in sources {
        let Some(source) = source else { continue };
        let at = at.field(name);
        if let Some(map) = &source.config_map {
            let at = at.field("configMap");
            for (name, found) in [
                ("uid", &map.uid),
                ("resourceVersion", &map.resource_version),
            ] {
                if text(found).is_empty() {
                    errors.push(FieldError::required(&at.field(name), ""));
                }
            }

            validate_map(map, &at, errors);
        }

        validate_presence(source, &at, errors);
    }
}

fn validate_presence(source: &NodeConfigSource, at: &Path<'_>, errors: &mut Errors) {
    if source.config_map.is_none() {
        let shown = internal::object(&[("ConfigMap", internal::pointer(None))]);
        errors.push(FieldError::invalid(
            at,
            shown,
            "exactly one reference subfield must be non-nil",
        ));
    }
}

fn validate_map(map: &ConfigMapNodeConfigSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(
        &map.namespace,
        names::dns1123_label,
        &at.field("namespace"),
        errors,
    );

    validate_required(
        &map.name,
        names::dns1123_subdomain,
        &at.field("name"),
        errors,
    );

    validate_required(
        &map.kubelet_config_key,
        names::config_map_key,
        &at.field("kubeletConfigKey"),
        errors,
    );
}
