//! Containers: regular, init and ephemeral ones.
//!
//! [`common`] validates all of them; [`init`] and [`ephemeral`] add checks of their own. An
//! ephemeral container is validated as the container it will be.

mod common;
mod env;
mod ephemeral;
mod init;
mod lifecycle;
mod mounts;
mod ports;
mod probe;
mod restart;

use std::borrow::Cow;
use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
pub(in crate::core::pod) use k8s_openapi::api::core::v1::Container;
use k8s_openapi::api::core::v1::PodSpec;

use super::Frame;
use crate::strategy::Errors;
use crate::validate::items;
pub(super) use common::PULL_POLICIES;
pub(super) use env::validate_env_files;
pub(in crate::core::pod) use ephemeral::as_container;

/// Validates every container of a spec.
pub(super) fn validate_all_containers(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    validate_regular(frame, &at.field("containers"), errors);
    init::validate_init_containers(frame, &at.field("initContainers"), errors);
    ephemeral::validate_ephemeral_containers(frame, &at.field("ephemeralContainers"), errors);
}

fn validate_regular(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    let containers = &frame.spec.containers;
    if containers.is_empty() {
        errors.push(FieldError::required(at, ""));
        return;
    }

    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = at.index(index);
        common::validate_container(container, frame, &at, errors);

        if !names.insert(&container.name) {
            errors.push(FieldError::duplicate(
                &at.field("name"),
                Quoted(&container.name).to_string(),
            ));
        }

        validate_hooks_and_probes(container, frame, &at, errors);
        restart::validate_restart_policy(container, &at, errors);
    }

    ports::validate_no_port_conflicts(containers, at, errors);
}

/// Validates what only long-running containers have: hooks and probes.
fn validate_hooks_and_probes(
    container: &Container,
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let grace = frame.spec.termination_grace_period_seconds;
    if let Some(lifecycle) = &container.lifecycle {
        lifecycle::validate_lifecycle(lifecycle, grace, &at.field("lifecycle"), errors);
    }

    probe::validate_liveness(
        container.liveness_probe.as_ref(),
        &at.field("livenessProbe"),
        errors,
    );

    probe::validate_readiness(
        container.readiness_probe.as_ref(),
        &at.field("readinessProbe"),
        errors,
    );

    probe::validate_liveness(
        container.startup_probe.as_ref(),
        &at.field("startupProbe"),
        errors,
    );
}

/// Validates the image of a pod, beyond the checks shared with templates.
pub(super) fn validate_image_unpadded(image: &str, at: &Path<'_>, errors: &mut Errors) {
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid_str(&at.field("image"), image, detail));
    }
}

/// Every container with its path below `at`, in upstream's order.
pub(in crate::core::pod) fn every_container(
    spec: &PodSpec,
    at: &Path<'_>,
    mut visit: impl FnMut(&Container, &Path<'_>),
) {
    for (index, container) in items(&spec.init_containers).iter().enumerate() {
        visit(container, &at.field("initContainers").index(index));
    }

    for (index, container) in spec.containers.iter().enumerate() {
        visit(container, &at.field("containers").index(index));
    }

    for (index, container) in items(&spec.ephemeral_containers).iter().enumerate() {
        visit(
            &as_container(container),
            &at.field("ephemeralContainers").index(index),
        );
    }
}

/// Every container, without its path.
pub(in crate::core::pod) fn containers(spec: &PodSpec) -> impl Iterator<Item = Cow<'_, Container>> {
    let listed = spec
        .containers
        .iter()
        .chain(items(&spec.init_containers))
        .map(Cow::Borrowed);
    listed.chain(
        items(&spec.ephemeral_containers)
            .iter()
            .map(|container| Cow::Owned(as_container(container))),
    )
}
