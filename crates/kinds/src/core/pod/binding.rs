//! What a Binding does to a pod.

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::core::v1::Binding;

use super::condition::Condition;
use crate::ApiError;

/// Validates a Binding. Upstream does not wrap these errors, so their reason is not `Invalid`.
pub fn validate(binding: &Binding) -> Result<(), ApiError> {
    let target = Path::Root.field("target");
    let mut errors = FieldErrors::default();

    let kind = binding.target.kind.as_deref().unwrap_or_default();
    if !kind.is_empty() && kind != "Node" {
        errors.push(FieldError::not_supported(
            &target.field("kind"),
            kind,
            &["Node", "<empty>"],
        ));
    }

    if binding
        .target
        .name
        .as_deref()
        .unwrap_or_default()
        .is_empty()
    {
        errors.push(FieldError::required(&target.field("name"), ""));
    }

    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::unexplained(errors.to_string()))
    }
}

/// Refuses to bind a pod that has a node, is being deleted, or waits at a scheduling gate.
pub fn check_unbound(pod: &Value) -> Result<(), String> {
    let name = pod.meta().name();
    if pod.meta().is_being_deleted() {
        return Err(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }

    match pod.at(&["spec", "nodeName"]).and_then(Value::as_str) {
        None | Some("") => {}
        Some(node) => return Err(format!("pod {name} is already assigned to node \"{node}\"")),
    }

    let gates = pod
        .at(&["spec", "schedulingGates"])
        .and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }

    Ok(())
}

/// Gives a pod the node of a Binding, and the Binding's labels and annotations.
pub fn assign(object: &mut Value, binding: &Binding, now: Timestamp) {
    let mut metadata = object.meta_mut();
    for (key, value) in binding.metadata.annotations.iter().flatten() {
        metadata.set_annotation(key, Some(value));
    }

    for (key, value) in binding.metadata.labels.iter().flatten() {
        metadata.set_label(key, Some(value));
    }

    let Some(pod) = object.as_object_mut() else {
        return;
    };
    pod.object_mut("spec").insert(
        "nodeName",
        binding.target.name.as_deref().unwrap_or_default(),
    );

    // A nomination is obsolete once the pod is bound.
    pod.object_mut("status").remove("nominatedNodeName");

    Condition {
        of: "PodScheduled",
        status: "True",
        reason: "",
        message: "",
    }
    .set(object, now);
}
