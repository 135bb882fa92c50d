//! Disks and file shares of cloud providers.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource,
    CinderVolumeSource, GCEPersistentDiskVolumeSource, PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource, VsphereVirtualDiskVolumeSource,
};

use super::super::{validate_enum, validate_required};
use crate::strategy::Errors;

pub(super) fn validate_gce_disk(
    source: &GCEPersistentDiskVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.pd_name, &at.field("pdName"), errors);
    validate_partition(source.partition, at, errors);
}

pub(super) fn validate_aws_disk(
    source: &AWSElasticBlockStoreVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.volume_id, &at.field("volumeID"), errors);
    validate_partition(source.partition, at, errors);
}

/// Validates a partition; zero is the whole disk.
fn validate_partition(partition: Option<i32>, at: &Path<'_>, errors: &mut Errors) {
    if let Some(partition) = partition.filter(|partition| !(0..=255).contains(partition)) {
        let detail = "must be between 1 and 255, inclusive";
        errors.push(FieldError::invalid(
            &at.field("partition"),
            partition.to_string(),
            detail,
        ));
    }
}

pub(super) fn validate_cinder(source: &CinderVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&source.volume_id, &at.field("volumeID"), errors);
    if let Some(secret) = &source.secret_ref {
        validate_required(&secret.name, &at.field("secretRef").field("name"), errors);
    }
}

pub(super) fn validate_azure_file(
    source: &AzureFileVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.secret_name, &at.field("secretName"), errors);
    validate_required(&source.share_name, &at.field("shareName"), errors);
}

pub(super) fn validate_azure_disk(
    source: &AzureDiskVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.disk_name, &at.field("diskName"), errors);
    validate_required(&source.disk_uri, &at.field("diskURI"), errors);

    if let Some(mode) = &source.caching_mode {
        validate_enum(
            mode,
            &["None", "ReadOnly", "ReadWrite"],
            &at.field("cachingMode"),
            errors,
        );
    }

    let Some(kind) = &source.kind else { return };
    validate_enum(
        kind,
        &["Dedicated", "Managed", "Shared"],
        &at.field("kind"),
        errors,
    );

    let (prefix, form) = match kind.as_str() {
        "Managed" => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        _ => (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        ),
    };

    if !source.disk_uri.starts_with(prefix) {
        errors.push(FieldError::not_supported(
            &at.field("diskURI"),
            &source.disk_uri,
            &[form],
        ));
    }
}

pub(super) fn validate_vsphere(
    source: &VsphereVirtualDiskVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.volume_path, &at.field("volumePath"), errors);
}

pub(super) fn validate_photon(
    source: &PhotonPersistentDiskVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.pd_id, &at.field("pdID"), errors);
}

pub(super) fn validate_portworx(source: &PortworxVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&source.volume_id, &at.field("volumeID"), errors);
}
