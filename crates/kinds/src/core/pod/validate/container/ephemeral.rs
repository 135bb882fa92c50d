//! Ephemeral containers: they are added to a running pod for debugging, and nothing may depend on
//! them.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{Container, EphemeralContainer, ResourceRequirements};

use super::super::Frame;
use super::{common, validate_image_unpadded};
use crate::strategy::Errors;
use crate::validate::{items, text};

const NOT_HERE: &str = "cannot be set for an Ephemeral Container";

pub(super) fn validate_ephemeral_containers(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    let spec = frame.spec;
    let listed = spec.containers.iter().chain(items(&spec.init_containers));
    let others: BTreeSet<&str> = listed.map(|container| container.name.as_str()).collect();

    let mut names = others.clone();
    for (index, given) in items(&spec.ephemeral_containers).iter().enumerate() {
        let (at, container) = (at.index(index), as_container(given));
        common::validate_container(&container, frame, &at, errors);
        validate_image_unpadded(text(&container.image), &at, errors);

        if !names.insert(&given.name) {
            errors.push(FieldError::duplicate(
                &at.field("name"),
                Quoted(&given.name).to_string(),
            ));
        }

        let target = text(&given.target_container_name);
        if !target.is_empty() && !others.contains(target) {
            errors.push(FieldError::not_found(
                &at.field("targetContainerName"),
                target,
            ));
        }

        validate_forbidden_fields(&container, &at, errors);
        let mounts = at.field("volumeMounts");
        for (place, mount) in items(&given.volume_mounts).iter().enumerate() {
            for (found, name) in [
                (&mount.sub_path, "subPath"),
                (&mount.sub_path_expr, "subPathExpr"),
            ] {
                if !text(found).is_empty() {
                    errors.push(FieldError::forbidden(
                        &mounts.index(place).field(name),
                        NOT_HERE,
                    ));
                }
            }
        }
    }
}

fn validate_forbidden_fields(container: &Container, at: &Path<'_>, errors: &mut Errors) {
    let no_resources = ResourceRequirements::default();
    let resources = container.resources.as_ref().unwrap_or(&no_resources);
    for (given, name) in [
        (container.ports.is_some(), "ports"),
        (*resources != no_resources, "resources"),
        (container.resize_policy.is_some(), "resizePolicy"),
        (container.restart_policy.is_some(), "restartPolicy"),
        (
            container.restart_policy_rules.is_some(),
            "restartPolicyRules",
        ),
        (container.liveness_probe.is_some(), "livenessProbe"),
        (container.readiness_probe.is_some(), "readinessProbe"),
        (container.startup_probe.is_some(), "startupProbe"),
        (container.lifecycle.is_some(), "lifecycle"),
    ] {
        if given {
            errors.push(FieldError::forbidden(&at.field(name), NOT_HERE));
        }
    }
}

/// An ephemeral container as a container, without its target.
pub(in crate::core::pod) fn as_container(given: &EphemeralContainer) -> Container {
    let EphemeralContainer {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        name,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context,
        startup_probe,
        stdin,
        stdin_once,
        target_container_name: _,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    } = given.clone();

    Container {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        name,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context,
        startup_probe,
        stdin,
        stdin_once,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    }
}
