//! StorageObjectInUseProtection: a finalizer on volumes and claims, so that none is removed while
//! it is in use.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::Part;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct StorageObjectInUseProtection;

#[async_trait]
impl Plugin for StorageObjectInUseProtection {
    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let resource = attributes.cx.resource;
        let finalizer = match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "persistentvolumes") => "kubernetes.io/pv-protection",
            ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
            ("storage.k8s.io", "volumeattributesclasses") => "kubernetes.io/vac-protection",
            _ => return Ok(()),
        };
        if attributes.operation == Operation::Create && attributes.cx.part == Part::Main {
            object.meta_mut().add_finalizer(finalizer);
        }
        Ok(())
    }
}
