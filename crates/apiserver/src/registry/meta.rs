//! The rules of metadata that hold for every kind.

use std::collections::HashSet;

use coracle_api::codec::json;
use coracle_api::meta::validate::{self, Prefix, Rules};
use coracle_api::names::{self, Rule};
use coracle_api::time::Timestamp;
use coracle_api::uid::Uid;
use coracle_api::{Map, Path, Value};

use super::strategy::{Context, Errors};
use super::{Registry, Scope};
use crate::ApiError;

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");

/// The object is called what the path says.
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

/// Carries over what a write of the status leaves alone in the metadata of some kinds.
pub(super) fn keep_metadata(new: &mut Value, old: &Value) {
    let before = old.get("metadata").and_then(Value::as_object);
    let mut metadata = new.meta_mut();
    for name in ["annotations", "finalizers", "labels", "ownerReferences"] {
        match before.and_then(|before| before.get(name)) {
            Some(value) => metadata.members().insert(name, value.clone()),
            None => metadata.members().remove(name),
        };
    }
}

/// The same owner named twice is one owner; who names it so is warned.
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
    pub(super) fn new_uid(&self) -> String {
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
            fields.insert("apiVersion", scope.hub.kind.api_version());
            fields.insert("kind", scope.hub.kind.name.clone());
        }

        let mut metadata = object.meta_mut();
        metadata.set_uid(&uid.to_string());
        metadata.set_creation_timestamp(Some(now));

        if scope.resource.has_generation {
            metadata.set_generation(1);
        }
    }
}

/// How a kind itself judges metadata, besides what is asked of every kind.
///
/// Upstream does both, which clients see: on a create the kind speaks first, together with what
/// else it finds wrong, and only where it found nothing comes what is asked of every kind; on an
/// update both speak, so that causes repeat.
#[derive(Clone, Copy)]
pub struct OwnMetadata {
    pub name: Rule,
    pub prefix: Prefix,
    /// Whether finalizers without a domain are known ones.
    pub known_finalizers: bool,
    /// Whether it looks at a new object's metadata.
    pub on_create: bool,
    /// Whether it looks at a change of metadata before all else. Kinds that do so later say no, and
    /// do.
    pub on_update: bool,
}

impl OwnMetadata {
    /// What most kinds do.
    pub const fn named(name: Rule) -> OwnMetadata {
        OwnMetadata {
            name,
            prefix: Prefix::LikeName,
            known_finalizers: true,
            on_create: true,
            on_update: true,
        }
    }

    /// The kind leaves metadata to the road.
    pub const NONE: OwnMetadata = OwnMetadata {
        name: names::path_segment_name,
        prefix: Prefix::PathSegment,
        known_finalizers: false,
        on_create: false,
        on_update: false,
    };

    /// Judges the metadata of a new object, or that of a changed one anew.
    pub fn judge(&self, object: &Value, cx: &Context<'_>, errors: &mut Errors) {
        let namespaced = cx.scope.resource.namespaced;
        let rules = Rules {
            namespaced,
            name: self.name,
            prefix: self.prefix,
        };
        validate::new(object.meta(), &METADATA, rules, errors);
        if self.known_finalizers {
            validate::known_finalizers(object.meta(), &METADATA, errors);
        }
    }

    /// Judges a change of metadata.
    pub fn judge_change(&self, new: &Value, old: &Value, errors: &mut Errors) {
        validate::change(new.meta(), old.meta(), &METADATA, errors);
        if self.known_finalizers {
            validate::known_finalizers(new.meta(), &METADATA, errors);
        }
    }
}

/// What is asked of the metadata of every new object.
pub(super) fn judge_new(object: &Value, scope: &Scope<'_>, errors: &mut Errors) {
    let rules = Rules {
        namespaced: scope.resource.namespaced,
        ..Rules::ANY_KIND
    };
    validate::new(object.meta(), &METADATA, rules, errors);
}

/// What is asked of every change of metadata.
pub(super) fn judge_change(new: &Value, old: &Value, scope: &Scope<'_>, errors: &mut Errors) {
    judge_new(new, scope, errors);
    validate::change(new.meta(), old.meta(), &METADATA, errors);
}
