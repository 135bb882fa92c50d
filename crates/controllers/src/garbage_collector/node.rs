//! One object in the graph.

use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_client::{Cached, Resource};

use super::identity::{Id, Identity};
use crate::views::{Owned, Owner};

/// An object, or what is said to be one, and what belongs to it. Most have no dependents and share
/// everything else with the informer: so a node is small.
#[derive(Debug)]
pub struct Node {
    /// What is known of it.
    pub(super) known: Known,
    /// The objects that name it as their owner.
    pub(super) dependents: BTreeSet<Id>,
}

/// What is known of an object.
#[derive(Debug)]
pub(super) enum Known {
    /// An informer has told of it.
    Seen {
        of: Arc<Resource>,
        object: Arc<Cached<Owned>>,
    },
    /// Only a reference has told of it.
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

    /// What it is called.
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

    /// Whether only references tell of it.
    pub fn is_virtual(&self) -> bool {
        matches!(self.known, Known::Virtual(_))
    }

    /// The resource that it is of, where that is known.
    pub fn resource(&self) -> Option<&Resource> {
        match &self.known {
            Known::Seen { of, .. } => Some(of),
            Known::Virtual(_) => None,
        }
    }

    /// Its namespace; of one that only references tell of, that of the first who did.
    pub fn namespace(&self) -> &str {
        match &self.known {
            Known::Seen { object, .. } => &object.key.namespace,
            Known::Virtual(identity) => &identity.namespace,
        }
    }

    /// The owners that it names.
    pub fn owners(&self) -> &[Owner] {
        match &self.known {
            Known::Seen { object, .. } => &object.owners,
            Known::Virtual(_) => NO_OWNERS,
        }
    }

    /// Whether it is going.
    pub fn is_being_deleted(&self) -> bool {
        self.seen().is_some_and(|object| object.is_being_deleted)
    }

    /// Whether it is going, and its dependents go before it.
    pub fn deletes_dependents(&self) -> bool {
        self.seen()
            .is_some_and(|object| object.deletes_dependents())
    }

    /// Whether it makes the deletion of an owner wait.
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
