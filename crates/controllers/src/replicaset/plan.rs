//! What one ReplicaSet needs now. Pure.
//!
//! Of the pods that might be its own some are kept, some adopted, some released; those that count
//! are compared with how many there should be. What is missing is created and what is too much is
//! deleted, never more than a few hundred at once, and not before everything that was set in motion
//! the last time has been seen.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use crate::pods::{Claims, claims, rank};
use crate::views::{Pod, ReplicaSet, next_available};

/// No more pods than this are created or deleted at once.
pub const BURST: usize = 500;

/// All that is known.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The ReplicaSet.
    pub set: Arc<Cached<ReplicaSet>>,
    /// The pods that it controls, and those of its namespace that nothing controls.
    pub pods: Vec<Arc<Cached<Pod>>>,
    /// How many active pods each node has of all ReplicaSets with the same owner.
    pub neighbours: BTreeMap<Text, usize>,
    /// Whether everything that was set in motion has been seen.
    pub settled: bool,
    /// The UIDs of pods that were told to go, which may still look as if they stayed. They do not
    /// count: whoever reads the status, a Deployment above all, must not rely on them.
    pub going: BTreeSet<Text>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whose the active pods are.
    pub claims: Claims,
    /// What is done about their number.
    pub pods: Pods,
    /// When to look again although nothing happens: a pod will count as available.
    pub wake_after: Option<Duration>,
}

/// What is done about the number of pods.
#[derive(Clone, Debug, PartialEq)]
pub enum Pods {
    /// Nothing.
    Keep,
    /// So many are made.
    Create(usize),
    /// These go.
    Delete(Vec<Arc<Cached<Pod>>>),
}

/// What the ReplicaSet needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let set = &observed.set;
    let stays = |pod: &&Arc<Cached<Pod>>| pod.is_active() && !observed.going.contains(&pod.uid);
    let claims = claims(set, observed.pods.iter().filter(stays));
    let pods = match observed.settled && !set.is_being_deleted() {
        true => number(observed, &claims.claimed, now),
        false => Pods::Keep,
    };

    let wake_after = next_available(&claims.claimed, set.min_ready_seconds(), now);
    Plan {
        claims,
        pods,
        wake_after,
    }
}

fn number(observed: &Observed, claimed: &[Arc<Cached<Pod>>], now: Timestamp) -> Pods {
    let wanted = observed.set.replicas();
    match claimed.len().cmp(&wanted) {
        Ordering::Less => Pods::Create((wanted - claimed.len()).min(BURST)),
        Ordering::Equal => Pods::Keep,
        Ordering::Greater => {
            let surplus = (claimed.len() - wanted).min(BURST);
            Pods::Delete(rank::first_to_go(
                claimed,
                &observed.neighbours,
                surplus,
                now,
            ))
        }
    }
}
