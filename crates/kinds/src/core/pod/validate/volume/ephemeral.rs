//! `ephemeral`: a claim that is created for the pod and deleted with it.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::meta::validate;
use coracle_api::names::dns1123_subdomain;
use k8s_openapi::api::core::v1::EphemeralVolumeSource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::core::claim;
use crate::strategy::Errors;

/// Validates the template at `place`, and the name that the claim will have from the volume at `at`.
pub(super) fn validate_ephemeral(
    source: &EphemeralVolumeSource,
    volume: &str,
    pod: Option<&str>,
    at: &Path<'_>,
    place: &Path<'_>,
    errors: &mut Errors,
) {
    let place = place.field("volumeClaimTemplate");
    match &source.volume_claim_template {
        None => errors.push(FieldError::required(&place, "")),
        Some(template) => {
            if let Some(given) = &template.metadata {
                validate_metadata(given, &place.field("metadata"), errors);
            }
            claim::validate_spec(&template.spec, &place.field("spec"), errors);
        }
    }

    if let Some(pod) = pod.filter(|_| !volume.is_empty()) {
        let claim = format!("{pod}-{volume}");
        let quoted = Quoted(&claim);
        let messages = dns1123_subdomain(&claim);
        let messages = messages
            .into_iter()
            .map(|message| format!("PVC name {quoted}: {message}"));
        refuse(&at.field("name"), volume, messages, errors);
    }
}

/// Validates the metadata of a template: labels and annotations, and nothing else.
fn validate_metadata(metadata: &ObjectMeta, at: &Path<'_>, errors: &mut Errors) {
    validate::annotations(
        metadata.annotations.iter().flatten(),
        &at.field("annotations"),
        errors,
    );

    validate::labels(
        metadata.labels.iter().flatten(),
        &at.field("labels"),
        errors,
    );

    let text = |given: &Option<String>| given.as_deref().is_some_and(|text| !text.is_empty());

    // The odd name is upstream's, which derives it from a struct field.
    let given = [
        (text(&metadata.name), "name"),
        (text(&metadata.generate_name), "generateName"),
        (text(&metadata.namespace), "namespace"),
        (text(&metadata.self_link), "selfLink"),
        (text(&metadata.uid), "uID"),
        (text(&metadata.resource_version), "resourceVersion"),
        (
            metadata
                .generation
                .is_some_and(|generation| generation != 0),
            "generation",
        ),
        (metadata.creation_timestamp.is_some(), "creationTimestamp"),
        (metadata.deletion_timestamp.is_some(), "deletionTimestamp"),
        (
            metadata.deletion_grace_period_seconds.is_some(),
            "deletionGracePeriodSeconds",
        ),
        (metadata.owner_references.is_some(), "ownerReferences"),
        (metadata.finalizers.is_some(), "finalizers"),
        (metadata.managed_fields.is_some(), "managedFields"),
    ];

    for (_, name) in given.into_iter().filter(|(given, _)| *given) {
        errors.push(FieldError::forbidden(&at.field(name), "cannot be set"));
    }
}
