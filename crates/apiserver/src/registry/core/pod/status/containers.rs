//! The statuses of containers: who they run as, and how their devices are.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, PodSpec, PodStatus, ResourceHealth, ResourceStatus,
};

use super::super::validate::security;
use super::STATUS;
use crate::registry::strategy::Errors;
use crate::registry::validate::{items, text};

const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];
const MESSAGE: usize = 1024;

pub(super) fn statuses(status: &PodStatus, spec: &PodSpec, errors: &mut Errors) {
    let lists = [
        (items(&status.container_statuses), "containerStatuses"),
        (items(&status.init_container_statuses), "initContainerStatuses"),
        (items(&status.ephemeral_container_statuses), "ephemeralContainerStatuses"),
    ];
    let os = spec.os.as_ref().map_or("linux", |os| os.name.as_str());
    for (list, name) in lists {
        for (index, status) in list.iter().enumerate() {
            user(status, os, &STATUS.field(name).index(index), errors);
        }
    }
    for ((list, name), containers) in
        lists.into_iter().zip([&spec.containers[..], items(&spec.init_containers)])
    {
        for (index, status) in list.iter().enumerate() {
            allocated(status, containers, &STATUS.field(name).index(index), errors);
        }
    }
    let (list, name) = lists[2];
    for (index, _) in
        list.iter().enumerate().filter(|(_, it)| !items(&it.allocated_resources_status).is_empty())
    {
        let at = STATUS.field(name);
        let at = at.index(index);
        let detail = "must not be specified in container status";
        errors.push(FieldError::forbidden(&at.field("allocatedResourcesStatus"), detail));
    }
}

fn user(status: &ContainerStatus, os: &str, at: &Path<'_>, errors: &mut Errors) {
    let Some(user) = status.user.as_ref().and_then(|user| user.linux.as_ref()) else { return };
    let at = at.field("user");
    let at = at.field("linux");
    match os {
        "windows" => errors.push(FieldError::forbidden(&at, "cannot be set for a windows pod")),
        "linux" => {
            security::id(Some(user.uid), &at.field("uid"), errors);
            security::id(Some(user.gid), &at.field("gid"), errors);
            for (index, group) in items(&user.supplemental_groups).iter().enumerate() {
                security::id(Some(*group), &at.field("supplementalGroups").index(index), errors);
            }
        }
        _ => {}
    }
}

fn allocated(status: &ContainerStatus, containers: &[Container], at: &Path<'_>, errors: &mut Errors) {
    let at = at.field("allocatedResourcesStatus");
    // Statuses of containers that are not there are let through.
    let container = containers.iter().find(|container| container.name == status.name);
    for (index, resource) in items(&status.allocated_resources_status).iter().enumerate() {
        let at = at.index(index);
        if let Some(container) = container {
            asked_for(resource, container, &at, errors);
        }
        let mut seen = BTreeSet::new();
        for (index, health) in items(&resource.resources).iter().enumerate() {
            let resources = at.field("resources");
            self::health(health, &mut seen, &resources.index(index), errors);
        }
    }
}

fn asked_for(resource: &ResourceStatus, container: &Container, at: &Path<'_>, errors: &mut Errors) {
    let requirements = container.resources.as_ref();
    let (found, detail) = match resource.name.strip_prefix("claim:") {
        Some(claim) => {
            let claims = requirements.map_or(&[][..], |requirements| items(&requirements.claims));
            let named = |name: &str, request: &str| match request {
                "" => claim == name,
                request => claim.split_once('/') == Some((name, request)),
            };
            let found = claims.iter().any(|claim| named(&claim.name, text(&claim.request)));
            let detail = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' \
                          or 'claim:<claimName>' if request is empty";
            (found, detail)
        }
        None => {
            let requests = requirements.and_then(|requirements| requirements.requests.as_ref());
            let found = requests.is_some_and(|requests| requests.contains_key(&resource.name));
            (found, "must match one of the container's resource requests")
        }
    };
    if !found {
        errors.push(FieldError::invalid_str(&at.field("name"), &resource.name, detail));
    }
}

fn health<'h>(health: &'h ResourceHealth, seen: &mut BTreeSet<&'h str>, at: &Path<'_>, errors: &mut Errors) {
    let found = text(&health.health);
    if !HEALTH.contains(&found) {
        errors.push(FieldError::not_supported(&at.field("health"), found, HEALTH));
    }
    if let Some(message) = &health.message {
        let place = at.field("message");
        if message.is_empty() {
            errors.push(FieldError::required(&place, "must be non-empty if specified"));
        } else if message.len() > MESSAGE {
            errors.push(FieldError::too_long(&place, MESSAGE));
        }
    }
    if !seen.insert(&health.resource_id) {
        let shown = Quoted(&health.resource_id).to_string();
        errors.push(FieldError::duplicate(&at.field("resourceID"), shown));
    }
}
