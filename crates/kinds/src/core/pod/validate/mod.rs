//! Validation of pods and pod templates.
//!
//! The errors are upstream's, in upstream's order: volumes, claims, containers, then the spec
//! around them. What the validation of other parts needs (mounts the volumes, containers the spec)
//! is in a [`Frame`]. Files are named after the fields.

mod affinity;
mod annotations;
mod claims;
mod container;
mod dns;
mod field_ref;
mod frame;
mod host;
pub(super) mod node_selector;
mod os;
mod path;
pub(super) mod resources;
mod scheduling;
pub(super) mod security;
mod spec;
pub(super) mod spread;
#[cfg(test)]
mod tests;
pub(super) mod tolerations;
pub(super) mod volume;

use coracle_api::field_error::FieldError;
use coracle_api::{Path, meta};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::options::Options;
use crate::strategy::Errors;
use crate::validate::{internal, items, text};
pub(super) use annotations::{deletion_cost, validate_annotations_update};
pub(super) use container::{as_container, containers, every_container};
use frame::Frame;
pub(super) use spec::validate_spec;

/// Validates annotations and spec of a pod, beyond the checks shared with templates.
pub(super) fn validate_pod(
    metadata: &ObjectMeta,
    spec: &PodSpec,
    options: &Options,
    errors: &mut Errors,
) {
    let at = Path::Root.field("spec");
    let annotations = metadata.annotations.as_ref();
    annotations::validate_annotations(
        annotations,
        spec,
        &Path::Root.field("metadata").field("annotations"),
        options,
        errors,
    );

    validate_spec(spec, Some(metadata), &at, options, errors);

    if text(&spec.service_account_name).is_empty() {
        volume::validate_no_token_projection(items(&spec.volumes), &at.field("volumes"), errors);
    }

    for (list, name) in [
        (&spec.containers[..], "containers"),
        (items(&spec.init_containers), "initContainers"),
    ] {
        for (index, container) in list.iter().enumerate() {
            container::validate_image_unpadded(
                text(&container.image),
                &at.field(name).index(index),
                errors,
            );
        }
    }
}

/// Validates what only new pods must satisfy.
pub(super) fn validate_new_pod(metadata: &ObjectMeta, spec: &PodSpec, errors: &mut Errors) {
    let at = Path::Root.field("spec");
    if !items(&spec.ephemeral_containers).is_empty() {
        errors.push(FieldError::forbidden(
            &at.field("ephemeralContainers"),
            "cannot be set on create",
        ));
    }

    if !text(&spec.node_name).is_empty() && !items(&spec.scheduling_gates).is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&at.field("nodeName"), detail));
    }

    security::validate_annotations_agree(metadata, spec, &at, errors);
}

/// Validates a pod template of any kind.
pub(crate) fn validate_template(
    template: &PodTemplateSpec,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    validate_template_metadata(template, at, options, errors);
    let (no_metadata, no_spec) = (ObjectMeta::default(), PodSpec::default());
    let metadata = template.metadata.as_ref().unwrap_or(&no_metadata);
    let spec = template.spec.as_ref().unwrap_or(&no_spec);
    let at = at.field("spec");
    validate_spec(spec, None, &at, options, errors);
    security::validate_annotations_agree(metadata, spec, &at, errors);

    if !items(&spec.ephemeral_containers).is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(
            &at.field("ephemeralContainers"),
            detail,
        ));
    }
}

/// Validates labels and annotations of a template.
pub(crate) fn validate_template_metadata(
    template: &PodTemplateSpec,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let (no_metadata, no_spec) = (ObjectMeta::default(), PodSpec::default());
    let metadata = template.metadata.as_ref().unwrap_or(&no_metadata);
    let spec = template.spec.as_ref().unwrap_or(&no_spec);
    meta::validate::labels(
        metadata.labels.iter().flatten(),
        &at.field("labels"),
        errors,
    );
    let place = at.field("annotations");
    meta::validate::annotations(metadata.annotations.iter().flatten(), &place, errors);
    annotations::validate_annotations(metadata.annotations.as_ref(), spec, &place, options, errors);
}

/// Validates that a text is one of a few values. Errors show it as JSON, because upstream has its
/// own type for it.
fn validate_enum(found: &str, known: &[&str], at: &Path<'_>, errors: &mut Errors) {
    if !known.contains(&found) {
        let bad_value = Some(internal::text(found));
        errors.push(FieldError {
            bad_value,
            ..FieldError::not_supported(at, found, known)
        });
    }
}

/// The same for a mandatory value.
fn validate_required_enum(found: &str, known: &[&str], at: &Path<'_>, errors: &mut Errors) {
    match found {
        "" => errors.push(FieldError::required(at, "")),
        found => validate_enum(found, known, at, errors),
    }
}

/// Validates that a text is given.
fn validate_required(found: &str, at: &Path<'_>, errors: &mut Errors) {
    if found.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
}

/// Validates that a number is within inclusive bounds.
fn validate_range(found: i64, least: i64, most: i64, at: &Path<'_>, errors: &mut Errors) {
    if !(least..=most).contains(&found) {
        let detail = format!("must be between {least} and {most}, inclusive");
        errors.push(FieldError::invalid(at, found.to_string(), detail));
    }
}
