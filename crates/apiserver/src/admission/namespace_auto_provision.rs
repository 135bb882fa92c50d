//! NamespaceAutoProvision: a namespace that an object is created in is created with it.

use async_trait::async_trait;
use coracle_api::catalog::BUILTIN;
use coracle_api::{Value, defaults};
use coracle_kinds::status::Reason;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct NamespaceAutoProvision;

#[async_trait]
impl Plugin for NamespaceAutoProvision {
    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let cx = &attributes.cx;
        if cx.dry_run || !cx.resource.namespaced || cx.namespace.is_empty() {
            return Ok(());
        }

        let namespaces = BUILTIN
            .resource("", "v1", "namespaces")
            .expect("namespaces are built in");
        if cx.cluster.exists(namespaces, cx.namespace) {
            return Ok(());
        }

        let kind = BUILTIN
            .kind("", "v1", "Namespace")
            .expect("namespaces are built in");
        let mut namespace = Value::object();
        if let Some(namespace) = namespace.as_object_mut() {
            namespace.insert("apiVersion", "v1");
            namespace.insert("kind", "Namespace");
        }
        namespace.meta_mut().members().insert("name", cx.namespace);
        defaults::apply(&mut namespace, kind, cx.now)?;
        match cx.cluster.create(namespaces, namespace).await {
            Err(error) if error.reason != Reason::AlreadyExists => {
                Err(attributes.forbidden(object, &error.message))
            }
            _ => Ok(()),
        }
    }
}
