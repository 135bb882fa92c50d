//! What one ReplicaSet needs now. Pure.
//!
//! Pods that may belong to it are kept, adopted or released; the active ones are compared with the
//! desired number. Missing pods are created and surplus ones deleted, a few hundred at once at
//! most, and not before all earlier creations and deletions have been observed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use crate::pods::{Claims, claims, rank};
use crate::views::{Pod, ReplicaSet, next_available};

/// The most pods created or deleted in one reconcile.
pub const BURST: usize = 500;

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The ReplicaSet.
    pub set: Arc<Cached<ReplicaSet>>,
    /// The pods that it controls, and those of its namespace that nothing controls.
    pub pods: Vec<Arc<Cached<Pod>>>,
    /// How many active pods each node has of all ReplicaSets with the same owner.
    pub neighbours: BTreeMap<Text, usize>,
    /// Whether all expectations are met.
    pub settled: bool,
    /// The UIDs of pods whose deletion was requested but not observed yet. They do not count:
    /// readers of the status, Deployments above all, must not rely on them.
    pub going: BTreeSet<Text>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Ownership of the active pods.
    pub claims: Claims,
    /// Pods to create or delete.
    pub pods: Pods,
    /// When to reconcile again without an event: when a pod becomes available.
    pub wake_after: Option<Duration>,
}

/// Pods to create or delete.
#[derive(Clone, Debug, PartialEq)]
pub enum Pods {
    /// Nothing.
    Keep,
    /// Create this many.
    Create(usize),
    /// Delete these.
    Delete(Vec<Arc<Cached<Pod>>>),
}

/// Decides what the ReplicaSet needs.
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
            Pods::Delete(rank::select_for_deletion(
                claimed,
                &observed.neighbours,
                surplus,
                now,
            ))
        }
    }
}
