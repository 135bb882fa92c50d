//! Volumes that are filled with files: from ConfigMaps, Secrets, the pod itself, images,
//! repositories.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource, GitRepoVolumeSource,
    ImageVolumeSource, KeyToPath, SecretVolumeSource,
};

use super::super::container::PULL_POLICIES;
use super::super::{field_ref, path, validate_required, validate_required_enum};
use crate::strategy::Errors;
use crate::validate::{items, text};

pub(super) fn validate_secret(source: &SecretVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(text(&source.secret_name), &at.field("secretName"), errors);
    path::validate_file_mode(source.default_mode, &at.field("defaultMode"), errors);
    validate_keys(items(&source.items), &at.field("items"), errors);
}

pub(super) fn validate_config_map(
    source: &ConfigMapVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&source.name, &at.field("name"), errors);
    path::validate_file_mode(source.default_mode, &at.field("defaultMode"), errors);
    validate_keys(items(&source.items), &at.field("items"), errors);
}

fn validate_keys(keys: &[KeyToPath], at: &Path<'_>, errors: &mut Errors) {
    for (index, item) in keys.iter().enumerate() {
        validate_key(item, &at.index(index), errors);
    }
}

/// Validates a key that becomes a file.
pub(super) fn validate_key(item: &KeyToPath, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&item.key, &at.field("key"), errors);
    validate_required(&item.path, &at.field("path"), errors);
    path::validate_unreserved_path(&item.path, &at.field("path"), errors);
    path::validate_file_mode(item.mode, &at.field("mode"), errors);
}

pub(super) fn validate_downward_api(
    source: &DownwardAPIVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    path::validate_file_mode(source.default_mode, &at.field("defaultMode"), errors);
    // Upstream's path does not name the file.
    for file in items(&source.items) {
        validate_downward_file(file, at, errors);
    }
}

/// Validates a downward API file.
pub(super) fn validate_downward_file(
    file: &DownwardAPIVolumeFile,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(&file.path, &at.field("path"), errors);
    path::validate_unreserved_path(&file.path, &at.field("path"), errors);

    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            field_ref::validate_field_ref(
                field,
                field_ref::OF_FILES,
                &at.field("fieldRef"),
                errors,
            );
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid_str(at, "resource", detail));
            }
        }
        (None, Some(resource)) => {
            field_ref::validate_resource_field_ref(
                resource,
                true,
                &at.field("resourceFieldRef"),
                errors,
            );
        }
        (None, None) => {
            errors.push(FieldError::required(
                at,
                "one of fieldRef and resourceFieldRef is required",
            ));
        }
    }

    path::validate_file_mode(file.mode, &at.field("mode"), errors);
}

pub(super) fn validate_git_repo(source: &GitRepoVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(&source.repository, &at.field("repository"), errors);
    path::validate_descending_path(text(&source.directory), &at.field("directory"), errors);
}

/// Validates an image as a volume; a template may leave the image to a controller.
pub(super) fn validate_image(
    source: &ImageVolumeSource,
    is_pod: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if is_pod {
        validate_required(text(&source.reference), &at.field("reference"), errors);
    }
    validate_required_enum(
        text(&source.pull_policy),
        PULL_POLICIES,
        &at.field("pullPolicy"),
        errors,
    );
}
