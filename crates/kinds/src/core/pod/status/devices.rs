//! Resource claims that were generated for a pod.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::names::{dns1123_label, dns1123_subdomain};
use k8s_openapi::api::core::v1::{Container, PodExtendedResourceClaimStatus, PodSpec, PodStatus};

use super::STATUS;
use crate::strategy::Errors;
use crate::validate::items;

pub(super) fn validate_claims(status: &PodStatus, spec: &PodSpec, errors: &mut Errors) {
    let at = STATUS.field("resourceClaimStatuses");
    let asked: BTreeSet<&str> = items(&spec.resource_claims)
        .iter()
        .map(|asked| asked.name.as_str())
        .collect();

    let mut seen = BTreeSet::new();
    for (index, claim) in items(&status.resource_claim_statuses).iter().enumerate() {
        let at = at.index(index);
        let (place, name) = (at.field("name"), &claim.name);
        if !asked.contains(name.as_str()) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid_str(&place, name, detail));
        }

        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&place, Quoted(name).to_string()));
        }

        if let Some(made) = &claim.resource_claim_name {
            refuse(
                &at.field("resourceClaimName"),
                made,
                dns1123_subdomain(made),
                errors,
            );
        }
    }

    if let Some(extended) = &status.extended_resource_claim_status {
        validate_extended_resources(extended, spec, errors);
    }
}

fn validate_extended_resources(
    status: &PodExtendedResourceClaimStatus,
    spec: &PodSpec,
    errors: &mut Errors,
) {
    let at = STATUS.field("extendedResourceClaimStatus");
    let mappings = at.field("requestMappings");
    if status.request_mappings.is_empty() {
        errors.push(FieldError::required(
            &mappings,
            "at least one request mapping is required",
        ));
    }

    // Of containers with the same name the first counts.
    let containers = items(&spec.init_containers)
        .iter()
        .rev()
        .chain(spec.containers.iter().rev());

    let by_name: BTreeMap<&str, &Container> = containers
        .map(|container| (container.name.as_str(), container))
        .collect();

    let mut seen = BTreeSet::new();
    for (index, mapping) in status.request_mappings.iter().enumerate() {
        let place = mappings.index(index);
        match by_name.get(mapping.container_name.as_str()) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                let at = place.field("containerName");
                errors.push(FieldError::invalid_str(
                    &at,
                    &mapping.container_name,
                    detail,
                ));
            }
            Some(container) => {
                let requests = container
                    .resources
                    .as_ref()
                    .and_then(|resources| resources.requests.as_ref());

                if !requests.is_some_and(|requests| requests.contains_key(&mapping.resource_name)) {
                    let detail = "must match the extended resource name of an entry in \
                                  spec.initContainers.resources.requests or spec.containers.resources.requests";
                    let at = place.field("resourceName");
                    errors.push(FieldError::invalid_str(&at, &mapping.resource_name, detail));
                }
            }
        }

        let request = &mapping.request_name;
        refuse(
            &at.field("requestName"),
            request,
            dns1123_label(request),
            errors,
        );

        if !seen.insert((&mapping.container_name, &mapping.resource_name, request)) {
            for (name, found) in [
                ("containerName", &mapping.container_name),
                ("resourceName", &mapping.resource_name),
                ("requestName", request),
            ] {
                errors.push(FieldError::duplicate(
                    &place.field(name),
                    Quoted(found).to_string(),
                ));
            }
        }
    }

    let name = &status.resource_claim_name;
    match name.as_str() {
        "" => errors.push(FieldError::required(&at.field("resourceClaimName"), "")),
        name => refuse(
            &at.field("resourceClaimName"),
            name,
            dns1123_subdomain(name),
            errors,
        ),
    }
}
