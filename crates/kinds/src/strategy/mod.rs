//! The part of a write that is a kind's own.
//!
//! The registry handles a write of every kind in the same way and calls the kind's [`Strategy`]
//! where kinds differ. On a create: `begin` reserves what is outside the object (a Service's
//! addresses), `prepare_create` fills in and clears fields, `validate` validates the result,
//! `warnings` returns what the client is told. On an update the same, with the old object beside
//! the new. Trees are changed, typed views are validated: a view is decoded once, after the
//! preparation, and the tree is beside it for checks that must tell absent from zero.

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

/// What a strategy may look at besides the objects.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub cluster: &'a dyn Cluster,
    /// The resource of the request.
    pub resource: &'a Resource,
    /// The kind that clients see; objects are in the storage version.
    pub kind: &'a Kind,
    /// Of the request; empty for cluster-wide objects.
    pub namespace: &'a str,
    pub user: &'a User,
    pub part: Part,
    pub dry_run: bool,
    pub now: Timestamp,
}

impl Context<'_> {
    /// Whether the object itself is kept if all goes well: its writer should know where that has no
    /// effect yet. What is only tried is not kept.
    pub fn keeps_object(&self) -> bool {
        self.part == Part::Main && !self.dry_run
    }
}

/// An object as a strategy validates it.
pub struct View<'a, T> {
    /// The typed view; `Deref` leads here.
    pub view: T,
    /// What the view was made from. It knows whether a field was absent.
    pub tree: &'a Value,
}

impl<T> std::ops::Deref for View<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

/// Runs when the fate of a write is known: `true`, it happened. Gives back what was reserved, or
/// lets go of what the old object held.
pub type Settle<'a> = Box<dyn FnOnce(bool) -> BoxFuture<'a, ()> + Send + 'a>;

/// Where errors are gathered.
pub type Errors = FieldErrors;

/// How a delete of one object goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The object goes at once, or when its finalizers are gone.
    None,
    /// The object stays for so many seconds, for a node to end what it stands for.
    Seconds(i64),
}

/// What a kind does differently on a write or delete.
#[expect(
    unused_variables,
    reason = "the names of parameters document what most kinds need not look at"
)]
pub trait Strategy: Send + Sync + 'static {
    /// The view that it validates by.
    type Object: DeserializeOwned + Send;

    /// The rule of its names.
    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    /// A name for an object that asks for one. `random` is chance.
    fn generate_name(&self, base: &str, random: u64) -> String {
        names::generate(base, random)
    }

    /// What it itself looks at in metadata when this part is written.
    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata::named(self.name_rule())
    }

    /// Reserves what lives outside the object, before it is shaped and validated. `old` is there on an
    /// update.
    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        None
    }

    /// Whether a new object may come with a status.
    fn keeps_status(&self) -> bool {
        false
    }

    /// Whether it can take long to tell what is wrong with an object.
    fn takes_long(&self) -> bool {
        false
    }

    /// What the writer of a new object should know whatever becomes of it. `sent` is not shaped
    /// yet.
    fn notices(&self, sent: &Value, cx: &Context<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Shapes a new object: fields that clients may not set, fields that follow from others. The
    /// status of a kind that has the subresource is gone already.
    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {}

    /// Shapes a changed object. What the part does not own has been carried over from the old one
    /// already, for [`Part::Main`] and [`Part::Status`]; other parts are the kind's own, and `new`
    /// is as the client sent it.
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

    /// Brings an object that was found good into the form that is kept.
    fn canonicalize(&self, new: &mut Value) {}

    /// What the writer should know though nothing is wrong.
    fn warnings(
        &self,
        new: &View<'_, Self::Object>,
        old: Option<&View<'_, Self::Object>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// Whether a write counts as a change of what is wanted, so that `generation` goes up. Asked
    /// for kinds that count generations, after the shaping.
    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool {
        part == Part::Main && content_changed(old, new)
    }

    /// Whether dependents of a deleted object are orphaned unless the request says otherwise.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// Why the object of that name is never deleted.
    fn never_deleted(&self, name: &str) -> Option<&'static str> {
        None
    }

    /// How long a deleted object lingers. `asked` is what the client wants.
    fn grace(&self, object: &Value, asked: Option<i64>) -> Grace {
        Grace::None
    }

    /// Whether something besides `metadata.finalizers` keeps a deleted object.
    fn holds(&self, object: &Value) -> bool {
        false
    }

    /// Shows on an object that it has been marked as deleted.
    fn mark_deleted(&self, object: &mut Value) {}

    /// The warning for a delete that does not say what happens to dependents.
    fn delete_notice(&self) -> Option<&'static str> {
        None
    }

    /// Lets go of what a deleted object held.
    fn after_delete<'a>(
        &'a self,
        object: &'a Value,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'a, ()>> {
        None
    }
}

/// Where a field of the spec is; most errors are below it.
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
