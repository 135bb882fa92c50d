//! What happens to one object of the graph. Pure.
//!
//! Decided in two steps: [`plan`] reads the graph, which may be stale, and decides what to ask the
//! server; [`verdict`] decides on the server's response.

use coracle_api::Text;
use coracle_client::{ObjectKey, Propagation, Resource};

use super::identity::{Id, Identity};

/// What was observed of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its identity.
    pub identity: Identity,
    /// Its resource; unknown for virtual objects.
    pub resource: Option<Resource>,
    /// What to do with it.
    pub turn: Step,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Decide whether it may stay.
    Look(Item),
    /// Orphan its dependents.
    Orphan(Vec<Dependent>),
}

/// An object of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Whether it is known only from references.
    pub is_virtual: bool,
    /// Whether it is being deleted.
    pub is_being_deleted: bool,
    /// Whether it has owner references.
    pub has_owners: bool,
    /// Whether it is being deleted after its dependents.
    pub deletes_dependents: bool,
    /// Whether dependents block its deletion.
    pub is_blocked: bool,
    /// Those of them that do not wait for dependents of their own.
    pub blocking: Vec<Id>,
    /// Whether it has dependents.
    pub has_dependents: bool,
    /// Whether a dependent waits for dependents of its own.
    pub is_waited_for: bool,
}

/// A dependent to orphan.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependent {
    /// Its resource.
    pub resource: Resource,
    /// Its key.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Text,
}

/// The first step.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing to do.
    Keep,
    /// Verify that it exists.
    Verify,
    /// Decide whether it may stay.
    Decide(Item),
    /// It waits for dependents; process these.
    Wait(Vec<Id>),
    /// It need not wait for its dependents any longer.
    Release,
    /// Orphan these dependents.
    Orphan(Vec<Dependent>),
}

/// Decides what to ask the server.
pub fn plan(observed: &Observed) -> Plan {
    match &observed.turn {
        Step::Orphan(dependents) => Plan::Orphan(dependents.clone()),
        Step::Look(item) if item.deletes_dependents && item.is_blocked => {
            Plan::Wait(item.blocking.clone())
        }
        Step::Look(item) if item.deletes_dependents => Plan::Release,
        // It is being deleted anyway; its dependents follow.
        Step::Look(item) if item.is_being_deleted => Plan::Keep,
        Step::Look(item) if item.is_virtual => Plan::Verify,
        Step::Look(item) if item.has_owners => Plan::Decide(item.clone()),
        Step::Look(_) => Plan::Keep,
    }
}

/// The state of an owner on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// It exists.
    Solid,
    /// It does not exist, or was replaced.
    Dangling,
    /// It is being deleted and waits for its dependents.
    Waiting,
}

/// The second step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// Keep it without these owner references.
    Unlink(Vec<Text>),
    /// Delete it.
    Delete {
        /// The propagation policy.
        propagation: Propagation,
        /// Whether its references must first stop blocking, because it and its owners would wait
        /// for each other.
        unblock: bool,
    },
}

/// Decides for an object with these owners. `orphans` and `foreground`: the finalizers it has
/// already.
pub fn verdict(item: &Item, owners: &[(Text, Owners)], orphans: bool, foreground: bool) -> Verdict {
    let any = |state: Owners| owners.iter().any(|(_, owner)| *owner == state);

    if owners.is_empty() {
        return Verdict::Keep;
    }

    if any(Owners::Solid) {
        let gone = owners.iter().filter(|(_, owner)| *owner != Owners::Solid);
        // Including those that wait for their dependents: they would wait forever for an object
        // that stays.
        let gone: Vec<Text> = gone.map(|(uid, _)| uid.clone()).collect();
        return if gone.is_empty() {
            Verdict::Keep
        } else {
            Verdict::Unlink(gone)
        };
    }

    if any(Owners::Waiting) && item.has_dependents {
        return Verdict::Delete {
            propagation: Propagation::Foreground,
            unblock: item.is_waited_for,
        };
    }

    let propagation = match (orphans, foreground) {
        (true, _) => Propagation::Orphan,
        (false, true) => Propagation::Foreground,
        (false, false) => Propagation::Background,
    };

    Verdict::Delete {
        propagation,
        unblock: false,
    }
}
