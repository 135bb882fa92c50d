//! NamespaceLifecycle: nothing is made in a namespace that does not exist or is going, and the
//! system's own stay.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;
use coracle_kinds::Part;
use coracle_kinds::status::Cause;

/// Namespaces without which a cluster is none.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

pub(super) struct NamespaceLifecycle;

#[async_trait]
impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    async fn admit(&self, _: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        check(attributes)
    }

    async fn validate(
        &self,
        _: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        match attributes.operation {
            Operation::Delete => check(attributes),
            Operation::Create | Operation::Update => Ok(()),
        }
    }
}

fn check(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let scope = attributes.scope;
    let is_namespace = scope.resource.group.is_empty() && scope.resource.plural == "namespaces";
    if is_namespace {
        let immortal = IMMORTAL.contains(&attributes.name);
        if attributes.operation == Operation::Delete && immortal {
            return Err(ApiError::forbidden(
                scope.resource,
                attributes.name,
                "this namespace may not be deleted",
            ));
        }

        return Ok(());
    }

    // One may ask about a namespace that is yet to be.
    if scope.resource.group == "authorization.k8s.io"
        && scope.resource.plural == "localsubjectaccessreviews"
    {
        return Ok(());
    }

    // Whoever deletes must be able to, wherever the object is.
    if !scope.resource.namespaced || attributes.operation == Operation::Delete {
        return Ok(());
    }

    let namespaces = BUILTIN
        .resource("", "v1", "namespaces")
        .expect("namespaces are built in");
    let Some(namespace) = attributes.registry.lookup(namespaces, scope.namespace) else {
        return Err(ApiError::not_found(namespaces, scope.namespace));
    };

    let going = namespace.at(&["status", "phase"]).and_then(Value::as_str) == Some("Terminating");
    if !going || attributes.operation != Operation::Create || attributes.part != Part::Main {
        return Ok(());
    }

    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        scope.namespace
    );

    let mut refused = ApiError::forbidden(scope.resource, attributes.name, &why);
    refused.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {} is being terminated", scope.namespace),
        field: "metadata.namespace".to_string(),
    });

    Err(refused)
}
