//! The statuses of containers: their users, and the health of their devices.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, PodSpec, PodStatus, ResourceHealth, ResourceStatus,
};

use super::super::validate::security;
use super::STATUS;
use crate::strategy::Errors;
use crate::validate::{items, text};

const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];
const MESSAGE: usize = 1024;

pub(super) fn validate_statuses(status: &PodStatus, spec: &PodSpec, errors: &mut Errors) {
    let lists = [
        (items(&status.container_statuses), "containerStatuses"),
        (
            items(&status.init_container_statuses),
            "initContainerStatuses",
        ),
        (
            items(&status.ephemeral_container_statuses),
            "ephemeralContainerStatuses",
        ),
    ];

    let os = spec.os.as_ref().map_or("linux", |os| os.name.as_str());
    for (list, name) in lists {
        for (index, status) in list.iter().enumerate() {
            validate_user(status, os, &STATUS.field(name).index(index), errors);
        }
    }

    for ((list, name), containers) in lists
        .into_iter()
        .zip([&spec.containers[..], items(&spec.init_containers)])
    {
        // Of containers with the same name the first counts.
        let by_name: BTreeMap<&str, Requested<'_>> = containers
            .iter()
            .rev()
            .map(|container| (container.name.as_str(), Requested::of(container)))
            .collect();

        for (index, status) in list.iter().enumerate() {
            let requested = by_name.get(status.name.as_str());
            validate_allocated(status, requested, &STATUS.field(name).index(index), errors);
        }
    }

    let (list, name) = lists[2];
    for (index, _) in list
        .iter()
        .enumerate()
        .filter(|(_, it)| !items(&it.allocated_resources_status).is_empty())
    {
        let at = STATUS.field(name);
        let at = at.index(index);
        let detail = "must not be specified in container status";
        errors.push(FieldError::forbidden(
            &at.field("allocatedResourcesStatus"),
            detail,
        ));
    }
}

fn validate_user(status: &ContainerStatus, os: &str, at: &Path<'_>, errors: &mut Errors) {
    let Some(user) = status.user.as_ref().and_then(|user| user.linux.as_ref()) else {
        return;
    };
    let at = at.field("user");

    let at = at.field("linux");
    match os {
        "windows" => errors.push(FieldError::forbidden(
            &at,
            "cannot be set for a windows pod",
        )),
        "linux" => {
            security::validate_user_or_group_id(Some(user.uid), &at.field("uid"), errors);
            security::validate_user_or_group_id(Some(user.gid), &at.field("gid"), errors);

            for (index, group) in items(&user.supplemental_groups).iter().enumerate() {
                security::validate_user_or_group_id(
                    Some(*group),
                    &at.field("supplementalGroups").index(index),
                    errors,
                );
            }
        }
        _ => {}
    }
}

/// What a container requests: names of resources, and of claims as its status names them.
struct Requested<'c> {
    requests: BTreeSet<&'c str>,
    claims: BTreeSet<String>,
}

impl<'c> Requested<'c> {
    fn of(container: &'c Container) -> Requested<'c> {
        let resources = container.resources.as_ref();
        let requests = resources
            .iter()
            .filter_map(|resources| resources.requests.as_ref())
            .flatten();

        let claims = resources
            .iter()
            .flat_map(|resources| items(&resources.claims));
        let claims = claims.map(|claim| match text(&claim.request) {
            "" => claim.name.clone(),
            request => format!("{}/{request}", claim.name),
        });

        Requested {
            requests: requests.map(|(name, _)| name.as_str()).collect(),
            claims: claims.collect(),
        }
    }
}

/// Statuses of unknown containers are accepted.
fn validate_allocated(
    status: &ContainerStatus,
    requested: Option<&Requested<'_>>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let at = at.field("allocatedResourcesStatus");
    for (index, resource) in items(&status.allocated_resources_status).iter().enumerate() {
        let at = at.index(index);
        if let Some(requested) = requested {
            validate_requested(resource, requested, &at, errors);
        }

        let mut seen = BTreeSet::new();
        for (index, health) in items(&resource.resources).iter().enumerate() {
            let resources = at.field("resources");
            validate_health(health, &mut seen, &resources.index(index), errors);
        }
    }
}

fn validate_requested(
    resource: &ResourceStatus,
    requested: &Requested<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let (found, detail) = match resource.name.strip_prefix("claim:") {
        Some(claim) => {
            let detail = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' \
                          or 'claim:<claimName>' if request is empty";
            (requested.claims.contains(claim), detail)
        }
        None => {
            let found = requested.requests.contains(resource.name.as_str());
            (found, "must match one of the container's resource requests")
        }
    };

    if !found {
        errors.push(FieldError::invalid_str(
            &at.field("name"),
            &resource.name,
            detail,
        ));
    }
}

fn validate_health<'h>(
    health: &'h ResourceHealth,
    seen: &mut BTreeSet<&'h str>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let found = text(&health.health);
    if !HEALTH.contains(&found) {
        errors.push(FieldError::not_supported(
            &at.field("health"),
            found,
            HEALTH,
        ));
    }

    if let Some(message) = &health.message {
        let place = at.field("message");
        if message.is_empty() {
            errors.push(FieldError::required(
                &place,
                "must be non-empty if specified",
            ));
        } else if message.len() > MESSAGE {
            errors.push(FieldError::too_long(&place, MESSAGE));
        }
    }

    if !seen.insert(&health.resource_id) {
        let shown = Quoted(&health.resource_id).to_string();
        errors.push(FieldError::duplicate(&at.field("resourceID"), shown));
    }
}
