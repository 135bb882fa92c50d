//! The rules of metadata that hold for every kind.

use std::collections::HashSet;

use coracle_api::codec::json;
use coracle_api::meta::validate::{self, Rules};
use coracle_api::time::Timestamp;
use coracle_api::uid::Uid;
use coracle_api::{Map, Path, Value};
use coracle_kinds::{ApiError, Errors};

use super::{Registry, Scope};

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");

/// The object's name is that of the path.
pub(super) fn check_name(object: &Value, name: &str) -> Result<(), ApiError> {
    match object.meta().name() {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        given if given != name => Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

/// Sets the namespace of the path in the object, or checks that they agree.
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

/// Removes the fields that only the server sets from an object of a client.
pub(super) fn wipe_system_fields(object: &mut Value) {
    let mut metadata = object.meta_mut();
    let members: &mut Map = metadata.members();
    for name in [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "selfLink",
        "uid",
    ] {
        members.remove(name);
    }
}

/// Duplicate owner references are merged, with a warning.
pub(super) fn merge_owners(object: &mut Value) -> Option<String> {
    let mut metadata = object.meta_mut();
    let owners = metadata
        .members()
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut)?;
    let mut seen = HashSet::with_capacity(owners.len());

    let mut twice = Vec::new();
    owners.retain(|owner| {
        let first = seen.insert(json::to_vec(owner));
        if !first {
            twice.push(
                owner
                    .get("uid")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            );
        }

        first
    });

    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

impl Registry {
    /// A UID that nothing has had.
    pub(crate) fn new_uid(&self) -> String {
        let random = (u128::from((self.random)()) << 64) | u128::from((self.random)());
        Uid::from_random(random.to_le_bytes()).to_string()
    }

    /// Name, uid, creation time and generation of a new object.
    pub(super) fn fill_new(&self, object: &mut Value, scope: &Scope<'_>) {
        let uid = self.new_uid();
        let now: Timestamp = (self.now)();
        let base = object.meta().generate_name().to_string();
        if object.meta().name().is_empty() && !base.is_empty() {
            let name = scope.strategy.generate_name(&base, (self.random)());
            object.meta_mut().set_name(&name);
        }

        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion", scope.storage_version.kind.api_version());
            fields.insert("kind", scope.storage_version.kind.name.clone());
        }

        let mut metadata = object.meta_mut();
        metadata.set_uid(&uid.to_string());
        metadata.set_creation_timestamp(Some(now));

        if scope.resource.has_generation {
            metadata.set_generation(1);
        }
    }
}

/// Validates the metadata of a new object.
pub(super) fn validate_new(object: &Value, scope: &Scope<'_>, errors: &mut Errors) {
    let rules = Rules {
        namespaced: scope.resource.namespaced,
        ..Rules::ANY_KIND
    };
    validate::new(object.meta(), &METADATA, rules, errors);
}

/// Validates a change of metadata.
pub(super) fn validate_change(new: &Value, old: &Value, scope: &Scope<'_>, errors: &mut Errors) {
    validate_new(new, scope, errors);
    validate::change(new.meta(), old.meta(), &METADATA, errors);
}
