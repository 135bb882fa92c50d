//! Volumes that are filled with files: from ConfigMaps, Secrets, the pod itself, images,
//! repositories.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource, GitRepoVolumeSource,
    ImageVolumeSource, KeyToPath, SecretVolumeSource,
};

use super::super::container::PULL_POLICIES;
use super::super::{field_ref, path, required, required_word};
use crate::strategy::Errors;
use crate::validate::{items, text};

pub(super) fn secret(source: &SecretVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    required(text(&source.secret_name), &at.field("secretName"), errors);
    path::mode(source.default_mode, &at.field("defaultMode"), errors);
    validate_keys(items(&source.items), &at.field("items"), errors);
}

pub(super) fn config_map(source: &ConfigMapVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    required(&source.name, &at.field("name"), errors);
    path::mode(source.default_mode, &at.field("defaultMode"), errors);
    validate_keys(items(&source.items), &at.field("items"), errors);
}

fn validate_keys(keys: &[KeyToPath], at: &Path<'_>, errors: &mut Errors) {
    for (index, item) in keys.iter().enumerate() {
        key(item, &at.index(index), errors);
    }
}

/// Validates a key that becomes a file.
pub(super) fn key(item: &KeyToPath, at: &Path<'_>, errors: &mut Errors) {
    required(&item.key, &at.field("key"), errors);
    required(&item.path, &at.field("path"), errors);
    path::unreserved(&item.path, &at.field("path"), errors);
    path::mode(item.mode, &at.field("mode"), errors);
}

pub(super) fn downward_api(source: &DownwardAPIVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    path::mode(source.default_mode, &at.field("defaultMode"), errors);
    // Upstream's path does not name the file.
    for file in items(&source.items) {
        downward_file(file, at, errors);
    }
}

/// Validates a downward API file.
pub(super) fn downward_file(file: &DownwardAPIVolumeFile, at: &Path<'_>, errors: &mut Errors) {
    required(&file.path, &at.field("path"), errors);
    path::unreserved(&file.path, &at.field("path"), errors);

    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            field_ref::field(field, field_ref::OF_FILES, &at.field("fieldRef"), errors);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid_str(at, "resource", detail));
            }
        }
        (None, Some(resource)) => {
            field_ref::resource(resource, true, &at.field("resourceFieldRef"), errors);
        }
        (None, None) => {
            errors.push(FieldError::required(
                at,
                "one of fieldRef and resourceFieldRef is required",
            ));
        }
    }

    path::mode(file.mode, &at.field("mode"), errors);
}

pub(super) fn git_repo(source: &GitRepoVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    required(&source.repository, &at.field("repository"), errors);
    path::descending(text(&source.directory), &at.field("directory"), errors);
}

/// Validates an image as a volume; a template may leave the image to a controller.
pub(super) fn image(source: &ImageVolumeSource, is_pod: bool, at: &Path<'_>, errors: &mut Errors) {
    if is_pod {
        required(text(&source.reference), &at.field("reference"), errors);
    }
    required_word(
        text(&source.pull_policy),
        PULL_POLICIES,
        &at.field("pullPolicy"),
        errors,
    );
}
