//! Any object, reduced to its owners and its deletion state: about a hundred bytes.

use coracle_api::Value;
use coracle_api::typed::TypedError;
use coracle_api::{Text, meta::ObjectMeta};
use coracle_client::Projection;
use std::sync::Arc;

/// The finalizer of an object that is deleted after its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents are orphaned.
pub const ORPHAN: &str = "orphan";

/// The owners of an object and its deletion state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// Its owners, in order.
    pub owners: Box<[Owner]>,
    /// Whether it is being deleted.
    pub is_being_deleted: bool,
    /// Whether its deletion waits until its dependents have been orphaned.
    pub orphans: bool,
    /// Whether its deletion waits until its dependents are deleted.
    pub foreground: bool,
}

/// An owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// The owner's name.
    pub name: Text,
    /// The owner's UID.
    pub uid: Text,
    /// Whether its foreground deletion waits for the object.
    pub blocks: bool,
}

impl Owned {
    /// Reads the metadata of an object.
    pub fn of(meta: ObjectMeta<'_>) -> Owned {
        let owner = |owner: coracle_api::owner::OwnerReference<'_>| Owner {
            api_version: Text::new(owner.api_version),
            kind: Text::new(owner.kind),
            name: Text::new(owner.name),
            uid: Text::new(owner.uid),
            blocks: owner.block_owner_deletion,
        };

        Owned {
            owners: meta.owner_references().map(owner).collect(),
            is_being_deleted: meta.is_being_deleted(),
            orphans: meta.has_finalizer(ORPHAN),
            foreground: meta.has_finalizer(FOREGROUND),
        }
    }

    /// Whether it is being deleted after its dependents.
    pub fn deletes_dependents(&self) -> bool {
        self.is_being_deleted && self.foreground
    }

    /// Whether it is being deleted and its dependents are orphaned.
    pub fn orphans_dependents(&self) -> bool {
        self.is_being_deleted && self.orphans
    }
}

impl Projection for Owned {
    const METADATA_ONLY: bool = true;

    fn project(object: &Arc<Value>) -> Result<Owned, TypedError> {
        Ok(Owned::of(object.meta()))
    }
}
