//! `pods/ephemeralcontainers`: containers are added to a pod, and never changed.

use std::collections::HashMap;

use coracle_api::Value;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{Container, EphemeralContainer, PodSpec};

use super::difference::difference;
use super::same;
use super::validate::as_container;
use crate::strategy::{Errors, SPEC};
use crate::validate::items;

/// Prepares the write: everything but the list of ephemeral containers is carried over.
pub(super) fn shape(new: &mut Value, old: &Value) {
    let given = new.at(&["spec", "ephemeralContainers"]).cloned();
    super::part::keep_but_spec(new, old);

    let Some(pod) = new.as_object_mut() else {
        return;
    };
    let mut spec = old
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();

    match given {
        Some(containers) => spec.insert("ephemeralContainers", containers),
        None => spec.remove("ephemeralContainers"),
    };

    pod.insert("spec", spec);
}

/// Validates the change of the list. Its order may change: patches do not keep it.
pub(super) fn validate_update(new: &PodSpec, old: &PodSpec, errors: &mut Errors) {
    let at = SPEC.field("ephemeralContainers");

    // Of containers with the same name the last counts.
    let containers: HashMap<&str, &EphemeralContainer> = items(&new.ephemeral_containers)
        .iter()
        .map(|container| (container.name.as_str(), container))
        .collect();

    for before in items(&old.ephemeral_containers) {
        let Some(now) = containers.get(before.name.as_str()) else {
            let detail = format!(
                "existing ephemeral containers \"{}\" may not be removed\n",
                before.name
            );
            errors.push(FieldError::forbidden(&at, detail));
            continue;
        };

        if !is_same(now, before) {
            let changes = difference(before, now);
            let detail = format!(
                "existing ephemeral containers \"{}\" may not be changed\n{changes}",
                before.name
            );
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
}

fn is_same(new: &EphemeralContainer, old: &EphemeralContainer) -> bool {
    let (mut now, before): (Container, Container) = (as_container(new), as_container(old));
    same::align_container(&mut now, &before);
    now == before && new.target_container_name == old.target_container_name
}
