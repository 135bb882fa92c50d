//! The rules of metadata that hold for every kind.

use coracle_api::field_error::{FieldError, FieldErrorKind};
use coracle_api::time::Timestamp;
use coracle_api::uid::Uid;
use coracle_api::{Map, Path, Value, names};

use super::{Registry, Scope};
use crate::ApiError;

/// The namespace of the path goes into the object, or agrees with it.
pub(super) fn settle_namespace(object: &mut Value, scope: &Scope<'_>) -> Result<(), ApiError> {
    let given = object.meta().namespace().to_string();
    if !scope.resource.namespaced {
        object.meta_mut().members().remove("namespace");
        return Ok(());
    }
    if given.is_empty() {
        object.meta_mut().set_namespace(scope.namespace);
    } else if given != scope.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// What only the server says about an object: taken away from what a client sent.
pub(super) fn wipe_system_fields(object: &mut Value) {
    let mut metadata = object.meta_mut();
    let members: &mut Map = metadata.members();
    for name in ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"] {
        members.remove(name);
    }
}

impl Registry {
    /// Name, uid, creation time and generation of a new object.
    pub(super) fn fill_new(&self, object: &mut Value, scope: &Scope<'_>) {
        let random = (u128::from((self.random)()) << 64) | u128::from((self.random)());
        let uid = Uid::from_random(random.to_le_bytes());
        let now: Timestamp = (self.now)();
        let base = object.meta().generate_name().to_string();
        if object.meta().name().is_empty() && !base.is_empty() {
            let name = names::generate(&base, (self.random)());
            object.meta_mut().set_name(&name);
        }
        let mut metadata = object.meta_mut();
        metadata.set_uid(&uid.to_string());
        metadata.set_creation_timestamp(Some(now));
        if scope.resource.has_generation {
            metadata.set_generation(1);
        }
    }
}

/// Name and generateName, as the kind's rule wants them.
pub(super) fn validate_name(object: &Value) -> Vec<FieldError> {
    let metadata = Path::Root.field("metadata");
    let name = object.meta().name();
    if name.is_empty() {
        return vec![FieldError {
            kind: FieldErrorKind::Required,
            field: "metadata.name".to_string(),
            bad_value: None,
            detail: "name or generateName is required".to_string(),
        }];
    }
    let refused = names::path_segment_name(name);
    refused.into_iter().map(|why| FieldError::invalid_str(&metadata.field("name"), name, why)).collect()
}
