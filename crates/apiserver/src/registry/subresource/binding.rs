//! `pods/binding`, and `bindings`, its old name: binds a pod to a node.
//!
//! The pod is changed as it is stored: field owners and generation stay, the spec is not validated.

use coracle_api::{Value, typed};
use coracle_kinds::core::pod::binding;
use coracle_kinds::status::{Details, Reason};
use coracle_kinds::{ApiError, Part, builtin};
use http::StatusCode;
use k8s_openapi::api::core::v1::Binding;

use super::{Call, Reply};
use crate::admission::{Notes, Operation, Options};
use crate::registry::{Scope, Write, meta};

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (mut object, mut warnings) = call.object(None)?;
    let notes = Notes::default();
    let result = bind(call, &mut object, &notes).await;
    warnings.extend(notes.warnings.take());
    match result {
        Ok(()) => Ok(Reply::created(warnings)),
        Err(refused) => Err(refused.after(warnings)),
    }
}

async fn bind(call: &Call<'_>, object: &mut Value, notes: &Notes) -> Result<(), ApiError> {
    let scope = &call.scope.as_sent();
    meta::settle_namespace(object, scope)?;

    let name = object.meta().name().to_string();
    let write = Write {
        subresource: call.subresource,
        ..Write::new(call.registry, scope, Part::Binding, call.options.dry_run)
    };
    let options = Options::Create(&call.options);
    // Of the old resource the path names no pod.
    let named = if call.name.is_empty() {
        &name
    } else {
        call.name
    };
    let attributes = write.attributes(Operation::Create, options, named, notes);
    call.registry.admission.admit(object, &attributes).await?;

    if !call.name.is_empty() && call.name != name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }

    let binding: Binding =
        typed::from_tree(object).map_err(|error| ApiError::internal(error.to_string()))?;
    binding::validate(&binding)?;
    call.registry
        .admission
        .validate(Some(object), &attributes)
        .await?;

    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }

    let pods = Scope::new(builtin("", "v1", "pods"), scope.namespace, scope.caller);
    let now = (call.registry.now)();
    let change = |pod: &mut Value| {
        check_preconditions(&binding, pod, &pods)?;
        binding::check_unbound(pod).map_err(|why| conflict(&name, &why))?;

        binding::assign(pod, &binding, now);

        Ok(())
    };

    call.registry
        .rewrite(&pods, &name, call.options.dry_run, change)
        .await?;

    Ok(())
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
