//! One object in the graph.

use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_client::{Cached, Resource};

use super::identity::{Id, Identity};
use crate::views::{Owned, Owner};

/// An object, or a reference to one, and its dependents. Most have no dependents and share
/// everything else with the informer, so a node is small.
#[derive(Debug)]
pub struct Node {
    /// Where its data come from.
    pub(super) known: Known,
    /// Its dependents.
    pub(super) dependents: BTreeSet<Id>,
}

/// Where the data of a node come from.
#[derive(Debug)]
pub(super) enum Known {
    /// Reported by an informer.
    Seen {
        of: Arc<Resource>,
        object: Arc<Cached<Owned>>,
    },
    /// Known only from a reference.
    Virtual(Box<Identity>),
}

const NO_OWNERS: &[Owner] = &[];

impl Node {
    pub(super) fn new(known: Known) -> Node {
        Node {
            known,
            dependents: BTreeSet::new(),
        }
    }

    /// Its identity.
    pub fn identity(&self) -> Identity {
        match &self.known {
            Known::Virtual(identity) => Identity::clone(identity),
            Known::Seen { of, object } => Identity {
                api_version: of.api_version(),
                kind: of.kind.clone(),
                name: object.key.name.clone(),
                uid: object.uid.clone(),
                namespace: object.key.namespace.clone(),
            },
        }
    }

    /// Whether it is known only from references.
    pub fn is_virtual(&self) -> bool {
        matches!(self.known, Known::Virtual(_))
    }

    /// Its resource, if known.
    pub fn resource(&self) -> Option<&Resource> {
        match &self.known {
            Known::Seen { of, .. } => Some(of),
            Known::Virtual(_) => None,
        }
    }

    /// Its namespace; for a virtual one, that of the first reference.
    pub fn namespace(&self) -> &str {
        match &self.known {
            Known::Seen { object, .. } => &object.key.namespace,
            Known::Virtual(identity) => &identity.namespace,
        }
    }

    /// Its owner references.
    pub fn owners(&self) -> &[Owner] {
        match &self.known {
            Known::Seen { object, .. } => &object.owners,
            Known::Virtual(_) => NO_OWNERS,
        }
    }

    /// Whether it is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.seen().is_some_and(|object| object.is_being_deleted)
    }

    /// Whether it is being deleted after its dependents.
    pub fn deletes_dependents(&self) -> bool {
        self.seen()
            .is_some_and(|object| object.deletes_dependents())
    }

    /// Whether it blocks the deletion of an owner.
    pub fn blocks(&self, owner: &str) -> bool {
        self.owners()
            .iter()
            .any(|named| named.uid == owner && named.blocks)
    }

    pub(super) fn seen(&self) -> Option<&Arc<Cached<Owned>>> {
        match &self.known {
            Known::Seen { object, .. } => Some(object),
            Known::Virtual(_) => None,
        }
    }
}
