//! Volumes of storage systems in the network.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1123_label;
use k8s_openapi::api::core::v1::{
    CephFSVolumeSource, FCVolumeSource, FlockerVolumeSource, GlusterfsVolumeSource,
    ISCSIVolumeSource, NFSVolumeSource, QuobyteVolumeSource, RBDVolumeSource, ScaleIOVolumeSource,
    StorageOSVolumeSource,
};

use super::super::{validate_range, validate_required};
use super::iqn;
use crate::strategy::Errors;
use crate::validate::internal::texts;
use crate::validate::{items, text, validate_required as validate_required_name};

pub(super) fn validate_nfs(source: &NFSVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&source.server, &at.field("server"), errors);
    validate_required(&source.path, &at.field("path"), errors);
    refuse(
        &at.field("path"),
        &source.path,
        coracle_api::names::absolute_path(&source.path),
        errors,
    );
}

pub(super) fn validate_iscsi(source: &ISCSIVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&source.target_portal, &at.field("targetPortal"), errors);

    match source.iqn.as_str() {
        "" => errors.push(FieldError::required(&at.field("iqn"), "")),
        name => refuse(&at.field("iqn"), name, iqn::wrong(name), errors),
    }

    validate_range(source.lun.into(), 0, 255, &at.field("lun"), errors);
    let authenticates =
        source.chap_auth_discovery == Some(true) || source.chap_auth_session == Some(true);
    if authenticates && source.secret_ref.is_none() {
        errors.push(FieldError::required(&at.field("secretRef"), ""));
    }
    if let Some(name) = &source.initiator_name {
        refuse(&at.field("initiatorname"), name, iqn::wrong(name), errors);
    }
}

/// Validates the length of volume name and portal, which form the name of a custom initiator.
pub(super) fn validate_iscsi_name(
    source: &ISCSIVolumeSource,
    name: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if source.initiator_name.is_some() && name.len() + 1 + source.target_portal.len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                      iscsi.initiatorName is specified.";
        errors.push(FieldError::invalid_str(&at.field("name"), name, detail));
    }
}

pub(super) fn validate_fibre_channel(source: &FCVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    let (targets, ids) = (items(&source.target_wwns), items(&source.wwids));
    let place = at.field("targetWWNs");
    if targets.is_empty() && ids.is_empty() {
        errors.push(FieldError::required(
            &place,
            "must specify either targetWWNs or wwids, but not both",
        ));
    }

    if targets.is_empty() {
        return;
    }

    if !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&place, texts(Some(targets)), detail));
    }

    match source.lun {
        None => {
            errors.push(FieldError::required(
                &at.field("lun"),
                "lun is required if targetWWNs is specified",
            ));
        }
        Some(lun) => validate_range(lun.into(), 0, 255, &at.field("lun"), errors),
    }
}

pub(super) fn validate_glusterfs(
    source: &GlusterfsVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.endpoints, &at.field("endpoints"), errors);
    validate_required(&source.path, &at.field("path"), errors);
}

pub(super) fn validate_flocker(source: &FlockerVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    let (name, uuid) = (text(&source.dataset_name), text(&source.dataset_uuid));
    if name.is_empty() && uuid.is_empty() {
        errors.push(FieldError::required(
            at,
            "one of datasetName and datasetUUID is required",
        ));
    }

    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid_str(at, "resource", detail));
    }

    if name.contains('/') {
        errors.push(FieldError::invalid_str(
            &at.field("datasetName"),
            name,
            "must not contain '/'",
        ));
    }
}

pub(super) fn validate_rbd(source: &RBDVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_monitors(&source.monitors, at, errors);
    validate_required(&source.image, &at.field("image"), errors);
}

pub(super) fn validate_cephfs(source: &CephFSVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_monitors(&source.monitors, at, errors);
}

fn validate_monitors(monitors: &[String], at: &Path<'_>, errors: &mut Errors) {
    if monitors.is_empty() {
        errors.push(FieldError::required(&at.field("monitors"), ""));
    }
}

pub(super) fn validate_quobyte(source: &QuobyteVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    if source.registry.is_empty() {
        errors.push(FieldError::required(&at.field("registry"), pairs));
    } else if text(&source.tenant).len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&at.field("tenant"), detail));
    } else {
        for _ in source
            .registry
            .split(',')
            .filter(|pair| !is_host_and_port(pair))
        {
            errors.push(FieldError::invalid_str(
                &at.field("registry"),
                &source.registry,
                pairs,
            ));
        }
    }

    validate_required(&source.volume, &at.field("volume"), errors);
}

/// `host:port`, either of which may be empty; a host with colons is in brackets.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else {
        return false;
    };
    let host = match host.strip_prefix('[') {
        Some(inner) => match inner.strip_suffix(']') {
            Some(inner) => inner,
            None => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };

    !host.contains(['[', ']']) && !port.contains(['[', ']'])
}

pub(super) fn validate_storage_os(
    source: &StorageOSVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required_name(
        text(&source.volume_name),
        dns1123_label,
        &at.field("volumeName"),
        errors,
    );

    if let Some(namespace) = source
        .volume_namespace
        .as_deref()
        .filter(|namespace| !namespace.is_empty())
    {
        refuse(
            &at.field("volumeNamespace"),
            namespace,
            dns1123_label(namespace),
            errors,
        );
    }

    if let Some(secret) = &source.secret_ref {
        validate_required(&secret.name, &at.field("secretRef").field("name"), errors);
    }
}

pub(super) fn validate_scale_io(source: &ScaleIOVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&source.gateway, &at.field("gateway"), errors);
    validate_required(&source.system, &at.field("system"), errors);
    validate_required(text(&source.volume_name), &at.field("volumeName"), errors);
}
