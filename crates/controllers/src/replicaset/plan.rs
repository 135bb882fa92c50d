//! What one ReplicaSet needs now. Pure.
//!
//! Of the pods that might be its own some are kept, some adopted, some released; those that count are compared with how
//! many there should be. What is missing is created and what is too much is deleted, never more than a few hundred at
//! once, and not before everything that was set in motion the last time has been seen.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::Cached;
use coracle_client::ownership::{Claim, claim};

use super::rank;
use crate::views::{Pod, ReplicaSet};

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
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Orphans that become its own.
    pub adopt: Vec<Arc<Cached<Pod>>>,
    /// Pods that are its own no longer.
    pub release: Vec<Arc<Cached<Pod>>>,
    /// The active pods that count, those to be adopted among them.
    pub claimed: Vec<Arc<Cached<Pod>>>,
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
    let mut plan = Plan {
        adopt: Vec::new(),
        release: Vec::new(),
        claimed: Vec::new(),
        pods: Pods::Keep,
        wake_after: None,
    };
    for pod in observed.pods.iter().filter(|pod| pod.is_active()) {
        let controller = pod.controller.as_ref().map(|controller| controller.uid.as_str());
        match claim(&set.uid, set.is_being_deleted(), controller, set.selects(&pod.labels), false) {
            Claim::Keep => plan.claimed.push(pod.clone()),
            Claim::Adopt => {
                plan.adopt.push(pod.clone());
                plan.claimed.push(pod.clone());
            }
            Claim::Release => plan.release.push(pod.clone()),
            Claim::Ignore => {}
        }
    }
    if observed.settled && !set.is_being_deleted() {
        plan.pods = number(observed, &plan.claimed, now);
    }
    plan.wake_after = next_available(&plan.claimed, set.min_ready_seconds(), now);
    plan
}

fn number(observed: &Observed, claimed: &[Arc<Cached<Pod>>], now: Timestamp) -> Pods {
    let wanted = observed.set.replicas();
    match claimed.len().cmp(&wanted) {
        Ordering::Less => Pods::Create((wanted - claimed.len()).min(BURST)),
        Ordering::Equal => Pods::Keep,
        Ordering::Greater => {
            let surplus = (claimed.len() - wanted).min(BURST);
            Pods::Delete(rank::first_to_go(claimed, &observed.neighbours, surplus, now))
        }
    }
}

/// When the next pod will count as available that is ready and does not yet.
fn next_available(pods: &[Arc<Cached<Pod>>], min_ready_seconds: i64, now: Timestamp) -> Option<Duration> {
    let due =
        pods.iter().filter_map(|pod| pod.available_at(min_ready_seconds)).filter(|at| *at > now).min()?;
    due.since(now).to_std()
}
