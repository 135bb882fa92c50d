//! The rules of metadata that hold for every kind.

use std::collections::HashSet;

use coracle_api::codec::json;
use coracle_api::field_error::FieldError;
use coracle_api::names::{self, Rule};
use coracle_api::time::Timestamp;
use coracle_api::uid::Uid;
use coracle_api::{Map, Path, Value};

use super::{Registry, Scope};
use crate::ApiError;

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");

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

/// The same owner named twice is one owner.
pub(super) fn merge_owners(object: &mut Value) {
    let mut metadata = object.meta_mut();
    let Some(owners) = metadata.members().get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    let mut seen = HashSet::with_capacity(owners.len());
    owners.retain(|owner| seen.insert(json::to_vec(owner)));
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
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion", scope.kind.api_version());
            fields.insert("kind", scope.kind.name.clone());
        }
        let mut metadata = object.meta_mut();
        metadata.set_uid(&uid.to_string());
        metadata.set_creation_timestamp(Some(now));
        metadata.members().remove("generation");
        if scope.resource.has_generation {
            metadata.set_generation(1);
        }
    }
}

/// What is wrong with the metadata of an object, by the rule of its kind's names.
pub(super) fn validate(object: &Value, _: &Scope<'_>, rule: Rule) -> Vec<FieldError> {
    let name = object.meta().name();
    if name.is_empty() {
        return vec![FieldError::required(&METADATA.field("name"), "name or generateName is required")];
    }
    rule(name).into_iter().map(|why| FieldError::invalid_str(&METADATA.field("name"), name, why)).collect()
}

/// What is wrong with the change of an object's metadata.
pub(super) fn validate_update(new: &Value, _old: &Value, scope: &Scope<'_>) -> Vec<FieldError> {
    validate(new, scope, names::path_segment_name)
}
