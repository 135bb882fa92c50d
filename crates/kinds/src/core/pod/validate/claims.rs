//! `resourceClaims`: the devices of a pod.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::names::{dns1123_label, dns1123_subdomain};
use k8s_openapi::api::core::v1::{PodResourceClaim, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::internal;
use super::validate_required;
use crate::core::pod::annotation::MIRROR;
use crate::strategy::Errors;
use crate::validate::text;

pub(super) fn validate_claims(
    metadata: Option<&ObjectMeta>,
    claims: &[PodResourceClaim],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let annotations = metadata.and_then(|metadata| metadata.annotations.as_ref());
    let mirrored = annotations.is_some_and(|annotations| annotations.contains_key(MIRROR));

    let mut names = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        if mirrored {
            let detail = "static pods do not support resource claims";
            errors.push(FieldError::forbidden(&Path::Root.field(""), detail));
            continue;
        }

        let at = at.index(index);
        let place = at.field("name");
        validate_required(&claim.name, &place, errors);

        if !claim.name.is_empty() {
            if names.insert(&claim.name) {
                refuse(&place, &claim.name, dns1123_label(&claim.name), errors);
            } else {
                errors.push(FieldError::duplicate(
                    &place,
                    Quoted(&claim.name).to_string(),
                ));
            }
        }

        validate_source(claim, &at, errors);
    }
}

fn validate_source(claim: &PodResourceClaim, at: &Path<'_>, errors: &mut Errors) {
    let detail = match (
        &claim.resource_claim_name,
        &claim.resource_claim_template_name,
    ) {
        (Some(_), Some(_)) => Some(
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        ),
        (None, None) => {
            Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        }
        _ => None,
    };

    if let Some(detail) = detail {
        errors.push(FieldError::invalid(
            at,
            internal::resource_claim(claim),
            detail,
        ));
    }

    for (name, found) in [
        ("resourceClaimName", &claim.resource_claim_name),
        (
            "resourceClaimTemplateName",
            &claim.resource_claim_template_name,
        ),
    ] {
        if let Some(found) = found {
            refuse(&at.field(name), found, dns1123_subdomain(found), errors);
        }
    }
}

/// Validates which of the pod's claims a container uses.
pub(super) fn validate_claims_are_used(
    claims: &[ResourceClaim],
    of_pod: &BTreeSet<&str>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        if errors.is_full() {
            return;
        }

        let (at, name) = (at.index(index), claim.name.as_str());
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }

        validate_used_once(claim, &mut seen, &at, errors);

        if !of_pod.contains(name) {
            let mut error = FieldError::not_found(&at, name);
            let known: Vec<&str> = of_pod.iter().copied().collect();
            error.detail = match known.as_slice() {
                [] => {
                    "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
                }
                known => format!(
                    "must be one of the names in pod.spec.resourceClaims: {}",
                    known.join(", ")
                ),
            };

            errors.push(error);
        }
    }
}

/// A claim is used as a whole, or by requests, each once.
fn validate_used_once(
    claim: &ResourceClaim,
    seen: &mut BTreeSet<String>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let (name, request) = (claim.name.as_str(), text(&claim.request));
    let duplicate = |what: &str| FieldError::duplicate(at, Quoted(what).to_string());
    if seen.contains(name) {
        errors.push(duplicate(name));
        return;
    }

    let key = match request {
        "" => name.to_owned(),
        request => {
            refuse(
                &at.field("request"),
                request,
                dns1123_label(request),
                errors,
            );
            format!("{name}/{request}")
        }
    };

    if seen.contains(&key) {
        errors.push(duplicate(&key));
    } else if request.is_empty() {
        let of_claim = format!("{name}/");
        let parts = seen
            .range(of_claim.clone()..)
            .take_while(|other| other.starts_with(&of_claim));
        errors.extend(parts.map(|_| duplicate(name)));
    }

    seen.insert(key);
}
