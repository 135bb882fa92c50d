//! Terminated containers, and whether they may run again.

use std::collections::{HashMap, HashSet};

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{
    Container, ContainerRestartRule, ContainerStatus, PodSpec, PodStatus,
};

use super::STATUS;
use crate::strategy::Errors;
use crate::validate::{items, text};

/// Validates that no container runs again that must not be restarted.
pub(super) fn validate_transitions(
    new: &PodStatus,
    old: &PodStatus,
    spec: &PodSpec,
    errors: &mut Errors,
) {
    let lists = [
        (
            &new.container_statuses,
            &old.container_statuses,
            &spec.containers[..],
            "containerStatuses",
        ),
        (
            &new.init_container_statuses,
            &old.init_container_statuses,
            items(&spec.init_containers),
            "initContainerStatuses",
        ),
    ];

    if !restarts_everything(spec) {
        for (new, old, containers, name) in lists {
            // Of containers with the same name the first counts.
            let by_name: HashMap<&str, &Container> = containers
                .iter()
                .rev()
                .map(|container| (container.name.as_str(), container))
                .collect();

            let may_run = |status: &ContainerStatus, code: i32| {
                let container = by_name.get(status.name.as_str());
                container.is_some_and(|container| restarts(container, spec, code))
            };
            ended(items(new), items(old), may_run, &STATUS.field(name), errors);
        }
    }

    let at = STATUS.field("ephemeralContainerStatuses");

    let (new, old) = (
        &new.ephemeral_container_statuses,
        &old.ephemeral_container_statuses,
    );
    ended(items(new), items(old), |_, _| false, &at, errors);
}

fn ended(
    new: &[ContainerStatus],
    old: &[ContainerStatus],
    may_run: impl Fn(&ContainerStatus, i32) -> bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let end = |status: &ContainerStatus| {
        status
            .state
            .as_ref()
            .and_then(|state| state.terminated.as_ref())
            .map(|terminated| terminated.exit_code)
    };

    let running: HashSet<&str> = new
        .iter()
        .filter(|now| end(now).is_none())
        .map(|now| now.name.as_str())
        .collect();

    for (index, before) in old.iter().enumerate() {
        let Some(code) = end(before) else { continue };
        if running.contains(before.name.as_str()) && !may_run(before, code) {
            let detail = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(
                &at.index(index).field("state"),
                detail,
            ));
        }
    }
}

/// Whether the exit of some container may restart all of them, regardless of their own policy.
fn restarts_everything(spec: &PodSpec) -> bool {
    let rules = spec.containers.iter().chain(items(&spec.init_containers));
    rules
        .flat_map(|container| items(&container.restart_policy_rules))
        .any(|rule| rule.action == "RestartAllContainers")
}

/// Whether a container with this exit code is restarted.
fn restarts(container: &Container, spec: &PodSpec, code: i32) -> bool {
    let by_policy = |policy: &str| match policy {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    };

    let Some(policy) = &container.restart_policy else {
        return by_policy(text(&spec.restart_policy));
    };

    let matching = items(&container.restart_policy_rules)
        .iter()
        .find(|rule| matches(rule, code));
    if matching
        .is_some_and(|rule| matches!(rule.action.as_str(), "Restart" | "RestartAllContainers"))
    {
        return true;
    }

    match policy.as_str() {
        "Always" | "OnFailure" | "Never" => by_policy(policy),
        _ => by_policy(text(&spec.restart_policy)),
    }
}

fn matches(rule: &ContainerRestartRule, code: i32) -> bool {
    rule.exit_codes.as_ref().is_some_and(|codes| {
        let listed = items(&codes.values).contains(&code);
        match codes.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        }
    })
}
