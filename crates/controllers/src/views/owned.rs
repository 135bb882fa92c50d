//! Any object, as those see it who care only for whom it belongs to and whether it is going: a
//! hundred bytes or so.

use coracle_api::Value;
use coracle_api::typed::TypedError;
use coracle_api::{Text, meta::ObjectMeta};
use coracle_client::Projection;
use std::sync::Arc;

/// The finalizer of an object that goes after what it owns.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object that goes without what it owns.
pub const ORPHAN: &str = "orphan";

/// Whom an object belongs to, and how it is going.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// Its owners, in the order in which it names them.
    pub owners: Box<[Owner]>,
    /// Whether it is going.
    pub is_being_deleted: bool,
    /// Whether it waits until its dependents have been made nobody's.
    pub orphans: bool,
    /// Whether it waits until its dependents are gone.
    pub foreground: bool,
}

/// An owner as the object names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// The owner's name.
    pub name: Text,
    /// Which it is.
    pub uid: Text,
    /// Whether its foreground deletion waits for the object.
    pub blocks: bool,
}

impl Owned {
    /// What metadata say.
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

    /// Whether it is going, and its dependents go before it.
    pub fn deletes_dependents(&self) -> bool {
        self.is_being_deleted && self.foreground
    }

    /// Whether it is going, and its dependents stay.
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
