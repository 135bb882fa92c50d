//! DefaultIngressClass: an ingress that names no class gets the default one.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::builtin;

use super::default_storage_class::default_of;
use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const MARK: &str = "ingressclass.kubernetes.io/is-default-class";

pub(super) struct DefaultIngressClass;

#[async_trait]
impl Plugin for DefaultIngressClass {
    async fn admit(
        &self,
        ingress: &mut Value,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let has_class = |ingress: &Value| {
            ingress
                .meta()
                .annotation("kubernetes.io/ingress.class")
                .is_some()
                || ingress
                    .at(&["spec", "ingressClassName"])
                    .is_some_and(|class| !class.is_null())
        };

        if !attributes.does(Operation::Create, "networking.k8s.io", "ingresses")
            || has_class(ingress)
        {
            return Ok(());
        }

        let classes = attributes
            .cx
            .cluster
            .list(builtin("networking.k8s.io", "v1", "ingressclasses"), "");
        if let Some(name) = default_of(&classes, &[MARK])
            && let Some(ingress) = ingress.as_object_mut()
        {
            ingress.object_mut("spec").insert("ingressClassName", name);
        }

        Ok(())
    }
}
