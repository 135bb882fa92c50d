//! What becomes of one object of the graph. Pure.
//!
//! It is decided in two steps. [`plan`] looks at the graph, which may be old, and says what must be
//! asked of the server; [`verdict`] looks at what the server said, and decides.

use coracle_api::Text;
use coracle_client::{ObjectKey, Propagation, Resource};

use super::identity::{Id, Identity};

/// What is known of an object when its turn comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Which it is.
    pub identity: Identity,
    /// Of which resource it is; unknown of one that only references tell of.
    pub resource: Option<Resource>,
    /// What its turn is for.
    pub turn: Turn,
}

/// What an object's turn is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// It is to be seen whether it may stay.
    Look(Item),
    /// Its dependents are to be made nobody's.
    Orphan(Vec<Dependent>),
}

/// An object of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Whether only references tell of it.
    pub is_virtual: bool,
    /// Whether it is going.
    pub is_being_deleted: bool,
    /// Whether it names an owner.
    pub has_owners: bool,
    /// Whether it is going, and its dependents go before it.
    pub deletes_dependents: bool,
    /// Whether dependents make it wait.
    pub is_blocked: bool,
    /// Of these the ones that do not wait for others in turn.
    pub blocking: Vec<Id>,
    /// Whether anything belongs to it.
    pub has_dependents: bool,
    /// Whether a dependent of it waits for dependents of its own.
    pub is_waited_for: bool,
}

/// An object that is about to be nobody's.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependent {
    /// Of which resource it is.
    pub resource: Resource,
    /// Where it is.
    pub key: ObjectKey,
    /// Which it is.
    pub uid: Text,
}

/// The first step.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing is to be done.
    Keep,
    /// Whether it is there is asked, and nothing else.
    Verify,
    /// Whether it may stay is asked.
    Judge(Item),
    /// It waits for dependents; these are looked at.
    Wait(Vec<Id>),
    /// It need not wait for its dependents any longer.
    Release,
    /// These dependents are made nobody's.
    Orphan(Vec<Dependent>),
}

/// What must be asked.
pub fn plan(observed: &Observed) -> Plan {
    match &observed.turn {
        Turn::Orphan(dependents) => Plan::Orphan(dependents.clone()),
        Turn::Look(item) if item.deletes_dependents && item.is_blocked => {
            Plan::Wait(item.blocking.clone())
        }
        Turn::Look(item) if item.deletes_dependents => Plan::Release,
        // It goes by itself; then its dependents are looked at.
        Turn::Look(item) if item.is_being_deleted => Plan::Keep,
        Turn::Look(item) if item.is_virtual => Plan::Verify,
        Turn::Look(item) if item.has_owners => Plan::Judge(item.clone()),
        Turn::Look(_) => Plan::Keep,
    }
}

/// What the server says of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// It is there.
    Solid,
    /// It is not there, or another has its name.
    Dangling,
    /// It is going, and waits for its dependents.
    Waiting,
}

/// The second step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// It stays, and these are its owners no longer.
    Unlink(Vec<Text>),
    /// It goes.
    Delete {
        /// What becomes of what it owns.
        propagation: Propagation,
        /// Whether its references must first stop to block, because it and its owners would wait
        /// for each other.
        unblock: bool,
    },
}

/// What becomes of an object with these owners. `orphans` and `foreground` say which finalizers it
/// has already.
pub fn verdict(item: &Item, owners: &[(Text, Owners)], orphans: bool, foreground: bool) -> Verdict {
    let any = |state: Owners| owners.iter().any(|(_, owner)| *owner == state);

    if owners.is_empty() {
        return Verdict::Keep;
    }

    if any(Owners::Solid) {
        let gone = owners.iter().filter(|(_, owner)| *owner != Owners::Solid);
        // Those that wait as well: they would wait for ever for an object that stays.
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
