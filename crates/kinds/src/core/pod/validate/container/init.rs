//! Init containers; those that are always restarted are sidecars.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::Container;

use super::super::Frame;
use super::{common, ports, restart, validate_hooks_and_probes};
use crate::strategy::Errors;
use crate::validate::items;

pub(super) fn validate_init_containers(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = frame
        .spec
        .containers
        .iter()
        .map(|other| other.name.as_str())
        .collect();

    for (index, container) in items(&frame.spec.init_containers).iter().enumerate() {
        let place = at.index(index);
        common::validate_container(container, frame, &place, errors);
        restart::validate_init_restart_policy(container, &place, errors);

        if names.contains(container.name.as_str()) {
            errors.push(FieldError::duplicate(
                &place.field("name"),
                Quoted(&container.name).to_string(),
            ));
        } else if !container.name.is_empty() {
            names.insert(&container.name);
        }

        // They run one by one; upstream counts each as the first.
        ports::validate_no_port_conflicts(std::slice::from_ref(container), at, errors);

        if restart::always(container) {
            validate_hooks_and_probes(container, frame, &place, errors);
            continue;
        }

        validate_no_hooks_or_probes(container, &place, errors);

        if !frame.options.restarting_init_resizes {
            validate_resize_policies(container, &place.field("resizePolicy"), errors);
        }
    }
}

fn validate_no_hooks_or_probes(container: &Container, at: &Path<'_>, errors: &mut Errors) {
    for (given, name) in [
        (container.lifecycle.is_some(), "lifecycle"),
        (container.liveness_probe.is_some(), "livenessProbe"),
        (container.readiness_probe.is_some(), "readinessProbe"),
        (container.startup_probe.is_some(), "startupProbe"),
    ] {
        if given {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.push(FieldError::forbidden(&at.field(name), detail));
        }
    }
}

fn validate_resize_policies(container: &Container, at: &Path<'_>, errors: &mut Errors) {
    for (index, policy) in items(&container.resize_policy).iter().enumerate() {
        if policy.restart_policy == "RestartContainer" {
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            let place = at.index(index);
            errors.push(FieldError::invalid_str(
                &place.field("restartPolicy"),
                "RestartContainer",
                detail,
            ));
        }
    }
}
