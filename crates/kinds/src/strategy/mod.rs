//! The part of a write that is a kind's own.
//!
//! The registry handles a write of every kind in the same way and calls the kind's [`Strategy`]
//! where kinds differ. On a create: `begin` reserves what is outside the object (a Service's
//! addresses), `prepare_create` fills in and clears fields, `validate` validates the result,
//! `warnings` returns the warnings for the client. On an update the same, with the old object
//! beside the new. Trees are changed, typed views are validated: a view is decoded once, after the
//! preparation, and the tree is beside it for checks that must distinguish absent from zero.

mod erased;
mod generic;

pub use erased::AnyStrategy;
pub(crate) use generic::Generic;

use coracle_api::catalog::{Kind, Resource};
use coracle_api::field_error::FieldErrors;
use coracle_api::names::{self, Rule};
use coracle_api::time::Timestamp;
use coracle_api::{Map, Path, Value};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::{ApiError, Cluster, OwnMetadata, Part, User};

/// What a strategy may use besides the objects.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub cluster: &'a dyn Cluster,
    /// The resource of the request.
    pub resource: &'a Resource,
    /// The kind that clients see; objects are in the storage version.
    pub kind: &'a Kind,
    /// The namespace of the request; empty for cluster-wide objects.
    pub namespace: &'a str,
    pub user: &'a User,
    pub part: Part,
    /// Of an update, the verb that was authorized: `update` or `patch`.
    pub update_verb: &'static str,
    pub dry_run: bool,
    pub now: Timestamp,
}

impl Context<'_> {
    /// Whether a successful write stores the object: warnings about kinds without effect depend on
    /// it. A dry run stores nothing.
    pub fn keeps_object(&self) -> bool {
        self.part == Part::Main && !self.dry_run
    }
}

/// An object as a strategy validates it.
pub struct View<'a, T> {
    /// The typed view, also reached through `Deref`.
    pub view: T,
    /// The tree that the view was decoded from. It shows whether a field was absent.
    pub tree: &'a Value,
}

impl<T> std::ops::Deref for View<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

/// Runs when the outcome of a write is known: `true`, it succeeded. Releases what was reserved, or
/// what the old object held.
pub type Settle<'a> = Box<dyn FnOnce(bool) -> BoxFuture<'a, ()> + Send + 'a>;

/// Where errors are gathered.
pub type Errors = FieldErrors;

/// The grace period of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The object is removed at once, or when its finalizers are removed.
    None,
    /// The object stays for this many seconds, for a node to stop it.
    Seconds(i64),
}

/// What a kind does differently on a write or delete.
#[expect(
    unused_variables,
    reason = "the names of parameters document what most kinds need not look at"
)]
pub trait Strategy: Send + Sync + 'static {
    /// The typed view that is validated.
    type Object: DeserializeOwned + Send;

    /// The rule of its names.
    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    /// Generates a name for an object with `generateName`. `random` is random bits.
    fn generate_name(&self, base: &str, random: u64) -> String {
        names::generate(base, random)
    }

    /// The kind's own checks of metadata when this part is written.
    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata::named(self.name_rule())
    }

    /// Reserves what is outside the object, before it is prepared and validated. `old` is given on
    /// an update.
    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        None
    }

    /// Whether a new object may have a status.
    fn keeps_status(&self) -> bool {
        false
    }

    /// Whether the validation of an object can take long.
    fn takes_long(&self) -> bool {
        false
    }

    /// Warnings about a new object that are returned even if it is refused. `sent` is not prepared
    /// yet.
    fn notices(&self, sent: &Value, cx: &Context<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Prepares a new object: clears fields that clients may not set, sets fields that follow from
    /// others. The status of a kind that has the subresource is already removed.
    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {}

    /// Prepares a changed object. What the part does not own has been carried over from the old one
    /// already, for [`Part::Main`] and [`Part::Status`]; for other parts the kind does this, and
    /// `new` is as the client sent it.
    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {}

    /// Validates a new object. Its metadata has been validated by [`Strategy::own_metadata`].
    fn validate(&self, new: &View<'_, Self::Object>, cx: &Context<'_>, errors: &mut Errors) {}

    /// Validates a changed object as if it were new, metadata included. Many kinds do so on an update.
    fn validate_anew(&self, new: &View<'_, Self::Object>, cx: &Context<'_>, errors: &mut Errors) {
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        self.validate(new, cx, errors);
    }

    /// Validates a changed object. The change of its metadata has been validated by
    /// [`Strategy::own_metadata`]; a kind that validates the new metadata once more calls
    /// [`OwnMetadata::validate`] or [`Strategy::validate_anew`].
    fn validate_update(
        &self,
        new: &View<'_, Self::Object>,
        old: &View<'_, Self::Object>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
    }

    /// Validates an object by rules that its author wrote, after everything else. A rule may only
    /// warn, too.
    fn validate_rules(
        &self,
        new: &View<'_, Self::Object>,
        old: Option<&View<'_, Self::Object>>,
        cx: &Context<'_>,
        errors: &mut Errors,
        warnings: &mut Vec<String>,
    ) {
    }

    /// Brings a valid object into the form that is stored.
    fn canonicalize(&self, new: &mut Value) {}

    /// Warnings about a valid object.
    fn warnings(
        &self,
        new: &View<'_, Self::Object>,
        old: Option<&View<'_, Self::Object>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// Whether a write changes the desired state, so that `generation` is incremented. Called for
    /// kinds that have generations, after the preparation.
    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool {
        part == Part::Main && content_changed(old, new)
    }

    /// Whether dependents of a deleted object are orphaned unless the request sets another policy.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// Why the object of that name cannot be deleted.
    fn never_deleted(&self, name: &str) -> Option<&'static str> {
        None
    }

    /// The grace period of a deleted object. `asked` is the client's.
    fn grace(&self, object: &Value, asked: Option<i64>) -> Grace {
        Grace::None
    }

    /// Whether something besides `metadata.finalizers` keeps a deleted object.
    fn holds(&self, object: &Value) -> bool {
        false
    }

    /// Updates an object when it is marked as deleted.
    fn mark_deleted(&self, object: &mut Value) {}

    /// The warning for a delete without a propagation policy.
    fn delete_notice(&self) -> Option<&'static str> {
        None
    }

    /// Releases what a deleted object held.
    fn after_delete<'a>(
        &'a self,
        object: &'a Value,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'a, ()>> {
        None
    }
}

/// The path of the spec; most errors are below it.
pub const SPEC: Path<'static> = Path::Field(&Path::Root, "spec");

/// Whether anything but metadata and status differs.
fn content_changed(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return true;
    };
    let content = |map: &Map| {
        map.iter()
            .filter(|(name, _)| !matches!(*name, "metadata" | "status"))
            .count()
    };

    let same = |(name, value): (&str, &Value)| {
        matches!(name, "metadata" | "status") || new.get(name) == Some(value)
    };

    content(old) != content(new) || !old.iter().all(same)
}
