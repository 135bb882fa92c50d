//! NamespaceLifecycle: no object is created in a namespace that does not exist or is terminating,
//! and system namespaces cannot be deleted.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_kinds::Part;
use coracle_kinds::status::Cause;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

/// Namespaces without which a cluster is none.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

pub(super) struct NamespaceLifecycle;

#[async_trait]
impl Plugin for NamespaceLifecycle {
    fn handles(&self, operation: Operation) -> bool {
        operation != Operation::Connect
    }

    async fn admit(&self, _: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        check(attributes)
    }
}

fn check(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let cx = &attributes.cx;
    let is_namespace = cx.resource.group.is_empty() && cx.resource.plural == "namespaces";
    if is_namespace {
        let immortal = IMMORTAL.contains(&attributes.name);
        if attributes.operation == Operation::Delete && immortal {
            return Err(ApiError::forbidden(
                cx.resource,
                attributes.name,
                "this namespace may not be deleted",
            ));
        }

        return Ok(());
    }

    // An access review may name a namespace that does not exist yet.
    if cx.resource.group == "authorization.k8s.io"
        && cx.resource.plural == "localsubjectaccessreviews"
    {
        return Ok(());
    }

    // Deleting must be possible, wherever the object is.
    if !cx.resource.namespaced || attributes.operation == Operation::Delete {
        return Ok(());
    }

    let namespaces = BUILTIN
        .resource("", "v1", "namespaces")
        .expect("namespaces are built in");
    let Some(namespace) = attributes.cx.cluster.get(namespaces, cx.namespace) else {
        return Err(ApiError::not_found(namespaces, cx.namespace));
    };

    let going = namespace.at(&["status", "phase"]).and_then(Value::as_str) == Some("Terminating");
    if !going || attributes.operation != Operation::Create || attributes.cx.part != Part::Main {
        return Ok(());
    }

    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        cx.namespace
    );

    let mut refused = ApiError::forbidden(cx.resource, attributes.name, &why);
    refused.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {} is being terminated", cx.namespace),
        field: "metadata.namespace".to_string(),
    });

    Err(refused)
}
