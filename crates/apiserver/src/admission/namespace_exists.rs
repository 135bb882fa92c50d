//! NamespaceExists: nothing is written in a namespace that does not exist.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct NamespaceExists;

#[async_trait]
impl Plugin for NamespaceExists {
    fn handles(&self, operation: Operation) -> bool {
        operation != Operation::Connect
    }

    async fn validate(
        &self,
        _: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let cx = &attributes.cx;
        if !cx.resource.namespaced || cx.namespace.is_empty() {
            return Ok(());
        }

        let namespaces = BUILTIN
            .resource("", "v1", "namespaces")
            .expect("namespaces are built in");
        match cx.cluster.exists(namespaces, cx.namespace) {
            true => Ok(()),
            false => Err(ApiError::not_found(namespaces, cx.namespace)),
        }
    }
}
