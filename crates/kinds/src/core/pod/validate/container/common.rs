//! Checks of every container.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::names::dns1123_label;
use k8s_openapi::api::core::v1::{Container, ContainerResizePolicy};

use super::super::{Frame, resources, security, validate_required, validate_required_enum};
use super::{env, mounts, ports};
use crate::strategy::Errors;
use crate::validate::{items, text, validate_required as validate_required_name};

pub(in crate::core::pod::validate) const PULL_POLICIES: &[&str] =
    &["Always", "IfNotPresent", "Never"];

pub(super) fn validate_container(
    container: &Container,
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required_name(&container.name, dns1123_label, &at.field("name"), errors);
    validate_required(text(&container.image), &at.field("image"), errors);
    validate_required_enum(
        text(&container.termination_message_policy),
        &["File", "FallbackToLogsOnError"],
        &at.field("terminationMessagePolicy"),
        errors,
    );

    ports::validate_ports(items(&container.ports), &at.field("ports"), errors);
    env::validate_env(items(&container.env), &at.field("env"), errors);
    env::validate_env_from(items(&container.env_from), &at.field("envFrom"), errors);

    mounts::validate_mounts(container, frame, &at.field("volumeMounts"), errors);
    mounts::validate_devices(container, frame, &at.field("volumeDevices"), errors);
    validate_required_enum(
        text(&container.image_pull_policy),
        PULL_POLICIES,
        &at.field("imagePullPolicy"),
        errors,
    );

    if let Some(requirements) = &container.resources {
        resources::validate_container_resources(
            requirements,
            frame,
            &at.field("resources"),
            errors,
        );
    }

    let place = at.field("resizePolicy");
    validate_resize_policies(
        items(&container.resize_policy),
        frame.restart_policy(),
        &place,
        errors,
    );

    if let Some(context) = &container.security_context {
        security::validate_security_context(context, frame, &at.field("securityContext"), errors);
    }
}

fn validate_resize_policies(
    policies: &[ContainerResizePolicy],
    pod_restarts: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (index, policy) in policies.iter().enumerate() {
        if !seen.insert(&policy.resource_name) {
            errors.push(FieldError::duplicate(
                &at.index(index),
                Quoted(&policy.resource_name).to_string(),
            ));
        }

        validate_required_enum(&policy.resource_name, &["cpu", "memory"], at, errors);
        validate_required_enum(
            &policy.restart_policy,
            &["NotRequired", "RestartContainer"],
            at,
            errors,
        );

        if pod_restarts == "Never" && policy.restart_policy != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid_str(at, &policy.restart_policy, detail));
        }
    }
}
