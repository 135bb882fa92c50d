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
    pub(super) source: Source,
    /// Its dependents.
    pub(super) dependents: BTreeSet<Id>,
}

/// Where the data of a node come from.
#[derive(Debug)]
pub(super) enum Source {
    /// Reported by an informer.
    Informer {
        of: Arc<Resource>,
        object: Arc<Cached<Owned>>,
    },
    /// Known only from a reference.
    Reference(Box<Identity>),
}

const NO_OWNERS: &[Owner] = &[];

impl Node {
    pub(super) fn new(source: Source) -> Node {
        Node {
            source,
            dependents: BTreeSet::new(),
        }
    }

    /// Its identity.
    pub fn identity(&self) -> Identity {
        match &self.source {
            Source::Reference(identity) => Identity::clone(identity),
            Source::Informer { of, object } => Identity {
                api_version: of.api_version(),
                kind: of.kind.clone(),
                name: object.key.name.clone(),
                uid: object.uid.clone(),
                namespace: object.key.namespace.clone(),
            },
        }
    }

    /// Whether it is source only from references.
    pub fn is_virtual(&self) -> bool {
        matches!(self.source, Source::Reference(_))
    }

    /// Its resource, if source.
    pub fn resource(&self) -> Option<&Resource> {
        match &self.source {
            Source::Informer { of, .. } => Some(of),
            Source::Reference(_) => None,
        }
    }

    /// Its namespace; for a virtual one, that of the first reference.
    pub fn namespace(&self) -> &str {
        match &self.source {
            Source::Informer { object, .. } => &object.key.namespace,
            Source::Reference(identity) => &identity.namespace,
        }
    }

    /// Its owner references.
    pub fn owners(&self) -> &[Owner] {
        match &self.source {
            Source::Informer { object, .. } => &object.owners,
            Source::Reference(_) => NO_OWNERS,
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
        match &self.source {
            Source::Informer { object, .. } => Some(object),
            Source::Reference(_) => None,
        }
    }
}
