//! `ephemeral`: a claim that is created for the pod and deleted with it.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::names::dns1123_subdomain;
use k8s_openapi::api::core::v1::EphemeralVolumeSource;

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
                claim::validate_template_metadata(given, &place.field("metadata"), errors);
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
