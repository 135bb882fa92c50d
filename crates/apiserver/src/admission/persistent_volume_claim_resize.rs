//! PersistentVolumeClaimResize: a claim grows only if its storage class allows expansion.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::quantity::Quantity;
use coracle_kinds::builtin;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct PersistentVolumeClaimResize;

#[async_trait]
impl Plugin for PersistentVolumeClaimResize {
    async fn validate(
        &self,
        claim: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        if !attributes.does(Operation::Update, "", "persistentvolumeclaims") {
            return Ok(());
        }

        let (Some(claim), Some(old)) = (claim, attributes.old) else {
            return Ok(());
        };
        if size(claim) <= size(old) {
            return Ok(());
        }

        if old.at(&["status", "phase"]).and_then(Value::as_str) != Some("Bound") {
            return Err(
                attributes.forbidden(claim, "Only bound persistent volume claims can be expanded")
            );
        }

        let (wanted, had) = (class(claim), class(old));
        let found = attributes.lookup(builtin("storage.k8s.io", "v1", "storageclasses"), wanted);
        let may_grow = |class: Arc<Value>| {
            class.get("allowVolumeExpansion").and_then(Value::as_bool) == Some(true)
        };
        if wanted.is_empty() || wanted != had || !found.is_some_and(may_grow) {
            let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
            return Err(attributes.forbidden(claim, why));
        }

        Ok(())
    }
}

fn size(claim: &Value) -> Quantity {
    let asked = claim.at(&["spec", "resources", "requests", "storage"]);
    asked
        .and_then(|asked| Quantity::from_value(asked).ok())
        .unwrap_or_default()
}

/// The legacy annotation takes precedence over the field.
fn class(claim: &Value) -> &str {
    let old = claim
        .meta()
        .annotation("volume.beta.kubernetes.io/storage-class");
    old.or_else(|| claim.at(&["spec", "storageClassName"])?.as_str())
        .unwrap_or_default()
}
