//! How kinds validate and carry over metadata.

use coracle_api::meta::validate::{self, Prefix, Rules};
use coracle_api::names::{self, Rule};
use coracle_api::{Path, Value};

use crate::strategy::{Context, Errors};

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");

/// How a kind validates metadata itself, besides the checks of every kind.
///
/// Upstream does both, which clients see: on a create the kind's own checks come first, together
/// with its other checks, and the checks of every kind only where those found nothing; on an update
/// both run, so that causes repeat.
#[derive(Clone, Copy)]
pub struct OwnMetadata {
    pub name: Rule,
    pub prefix: Prefix,
    /// Whether finalizers without a domain are known ones.
    pub known_finalizers: bool,
    /// Whether the metadata of new objects is validated.
    pub on_create: bool,
    /// Whether a change of metadata is validated before anything else. Kinds that validate it later
    /// set `false` and do so themselves.
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

    /// The kind has no checks of its own.
    pub const NONE: OwnMetadata = OwnMetadata {
        name: names::path_segment_name,
        prefix: Prefix::PathSegment,
        known_finalizers: false,
        on_create: false,
        on_update: false,
    };

    /// Validates the metadata of a new object, or of a changed one as if it were new.
    pub fn validate(&self, object: &Value, cx: &Context<'_>, errors: &mut Errors) {
        let namespaced = cx.resource.namespaced;
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

    /// Validates a change of metadata.
    pub fn validate_change(&self, new: &Value, old: &Value, errors: &mut Errors) {
        validate::change(new.meta(), old.meta(), &METADATA, errors);
        if self.known_finalizers {
            validate::known_finalizers(new.meta(), &METADATA, errors);
        }
    }
}

/// Carries over the metadata that a write of the status does not change in some kinds.
pub(crate) fn keep_metadata(new: &mut Value, old: &Value) {
    let before = old.get("metadata").and_then(Value::as_object);
    let mut metadata = new.meta_mut();
    for name in ["annotations", "finalizers", "labels", "ownerReferences"] {
        match before.and_then(|before| before.get(name)) {
            Some(value) => metadata.members().insert(name, value.clone()),
            None => metadata.members().remove(name),
        };
    }
}
