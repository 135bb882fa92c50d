//! `pods/binding`, and `bindings` as it was once called: gives a pod its node.
//!
//! The pod is changed as it stands in the store: nobody's fields, no generation, no judgement of
//! the spec.

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::{Path, Value, typed};
use http::StatusCode;
use k8s_openapi::api::core::v1::Binding;

use super::condition::Condition;
use crate::ApiError;
use crate::admission::{Attributes, Operation, Warnings};
use crate::registry::{Call, Part, Reply, Scope, meta};
use crate::status::{Details, Reason};

pub(in crate::registry) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (mut object, warnings) = call.object(None)?;
    match bind(call, &mut object).await {
        Ok(()) => Ok(Reply::created(warnings)),
        Err(refused) => Err(refused.after(warnings)),
    }
}

async fn bind(call: &Call<'_>, object: &mut Value) -> Result<(), ApiError> {
    let scope = &call.scope;
    meta::settle_namespace(object, scope)?;

    let name = object.meta().name().to_string();
    let attributes = Attributes {
        registry: call.registry,
        scope,
        operation: Operation::Create,
        part: Part::Binding,
        name: &name,
        old: None,
        dry_run: call.options.dry_run,
        warnings: &Warnings::default(),
    };
    call.registry.admission.admit(object, &attributes).await?;

    if !call.name.is_empty() && call.name != name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }

    let binding: Binding =
        typed::from_tree(object).map_err(|error| ApiError::internal(error.to_string()))?;
    validate(&binding)?;
    call.registry
        .admission
        .validate(Some(object), &attributes)
        .await?;

    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }

    let pods = Scope::new(super::resource(), scope.namespace, scope.caller);
    let now = (call.registry.now)();
    let change = |pod: &mut Value| {
        check_preconditions(&binding, pod, &pods)?;
        check_unbound(pod).map_err(|why| conflict(&name, &why))?;

        assign(pod, &binding);
        Condition {
            of: "PodScheduled",
            status: "True",
            reason: "",
            message: "",
        }
        .set(pod, now);

        Ok(())
    };

    call.registry
        .rewrite(&pods, &name, call.options.dry_run, change)
        .await?;

    Ok(())
}

/// Upstream hands these on as they are, so that they are no `Invalid`.
fn validate(binding: &Binding) -> Result<(), ApiError> {
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

/// The uid and version that a Binding names are those of its pod.
fn check_preconditions(binding: &Binding, pod: &Value, pods: &Scope<'_>) -> Result<(), ApiError> {
    let (name, pod) = (pod.meta().name(), pod.meta());
    let wanted = [
        ("UID", &binding.metadata.uid, pod.uid()),
        (
            "ResourceVersion",
            &binding.metadata.resource_version,
            pod.resource_version(),
        ),
    ];

    for (what, wanted, found) in wanted {
        let Some(wanted) = wanted
            .as_deref()
            .filter(|wanted| !wanted.is_empty() && *wanted != found)
        else {
            continue;
        };

        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
            String::from_utf8_lossy(&pods.store_key(name))
        );

        return Err(ApiError::conflict(pods.resource, name, &why));
    }

    Ok(())
}

fn check_unbound(pod: &Value) -> Result<(), String> {
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

/// The node, and the Binding's labels and annotations on top of the pod's.
fn assign(pod: &mut Value, binding: &Binding) {
    let mut metadata = pod.meta_mut();
    for (key, value) in binding.metadata.annotations.iter().flatten() {
        metadata.set_annotation(key, Some(value));
    }

    for (key, value) in binding.metadata.labels.iter().flatten() {
        metadata.set_label(key, Some(value));
    }

    let Some(pod) = pod.as_object_mut() else {
        return;
    };
    pod.object_mut("spec").insert(
        "nodeName",
        binding.target.name.as_deref().unwrap_or_default(),
    );

    // Who was nominated is of no interest once it is decided.
    pod.object_mut("status").remove("nominatedNodeName");
}

fn conflict(name: &str, why: &str) -> ApiError {
    let message = format!("Operation cannot be fulfilled on pods/binding \"{name}\": {why}");
    let mut refused = ApiError::new(StatusCode::CONFLICT, Reason::Conflict, message);
    let details = Details {
        name: name.to_string(),
        kind: "pods/binding".to_string(),
        ..Details::default()
    };
    refused.details = Some(Box::new(details));
    refused
}
