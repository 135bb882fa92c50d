//! Which pods are deleted first when there are too many.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use crate::views::{Phase, Pod};

/// The `count` pods to delete first; `neighbours` is the number of pods of the same set on a node.
pub fn select_for_deletion(
    pods: &[Arc<Cached<Pod>>],
    neighbours: &BTreeMap<Text, usize>,
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Cached<Pod>>> {
    let mut ordered = pods.to_vec();
    // If all are deleted, the order does not matter.
    if count < pods.len() {
        ordered.sort_by(|one, other| order(one, other, neighbours, now));
    }
    ordered.truncate(count);
    ordered
}

fn order(
    one: &Cached<Pod>,
    other: &Cached<Pod>,
    neighbours: &BTreeMap<Text, usize>,
    now: Timestamp,
) -> Ordering {
    let on_same_node = |pod: &Pod| neighbours.get(&pod.node).copied().unwrap_or_default();
    let unplaced_first = one.node.is_empty().cmp(&other.node.is_empty()).reverse();
    unplaced_first
        .then_with(|| phase(one).cmp(&phase(other)))
        .then_with(|| one.is_ready().cmp(&other.is_ready()))
        .then_with(|| one.deletion_cost.cmp(&other.deletion_cost))
        .then_with(|| on_same_node(other).cmp(&on_same_node(one)))
        .then_with(|| by_age(one, other, one.ready_since(), other.ready_since(), now))
        .then_with(|| other.restarts.cmp(&one.restarts))
        .then_with(|| other.sidecar_restarts.cmp(&one.sidecar_restarts))
        .then_with(|| by_age(one, other, one.created, other.created, now))
        // Upstream leaves the order of equals open; here it is deterministic.
        .then_with(|| one.uid.cmp(&other.uid))
}

/// The order in which a Job's pods are deleted: youngest first, in whole seconds.
pub fn youngest_first(one: &Cached<Pod>, other: &Cached<Pod>) -> Ordering {
    let unplaced_first = one.node.is_empty().cmp(&other.node.is_empty()).reverse();
    let younger = |one: Option<Timestamp>, other: Option<Timestamp>| match (one, other) {
        (Some(one), Some(other)) => other.cmp(&one),
        (one, other) => one.is_some().cmp(&other.is_some()),
    };

    unplaced_first
        .then_with(|| phase(one).cmp(&phase(other)))
        .then_with(|| one.is_ready().cmp(&other.is_ready()))
        .then_with(|| younger(one.ready_since(), other.ready_since()))
        .then_with(|| other.restarts.cmp(&one.restarts))
        .then_with(|| other.sidecar_restarts.cmp(&one.sidecar_restarts))
        .then_with(|| younger(one.created, other.created))
        .then_with(|| one.uid.cmp(&other.uid))
}

fn phase(pod: &Pod) -> u8 {
    match pod.phase {
        Phase::Pending => 0,
        Phase::Unknown => 1,
        Phase::Running | Phase::Succeeded | Phase::Failed => 2,
    }
}

/// The younger first, by orders of magnitude: among pods of about the same age the UID decides, so
/// that it is not always the newest ones.
fn by_age(
    one: &Cached<Pod>,
    other: &Cached<Pod>,
    one_since: Option<Timestamp>,
    other_since: Option<Timestamp>,
    now: Timestamp,
) -> Ordering {
    match (one_since, other_since) {
        (Some(one_since), Some(other_since)) if one_since != other_since => {
            let ages = magnitude(one_since, now).cmp(&magnitude(other_since, now));
            ages.then_with(|| one.uid.cmp(&other.uid))
        }
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// The logarithm of an age; less than any for times in the future.
fn magnitude(since: Timestamp, now: Timestamp) -> Option<u32> {
    u64::try_from(now.since(since).as_nanos())
        .ok()?
        .checked_ilog2()
}
