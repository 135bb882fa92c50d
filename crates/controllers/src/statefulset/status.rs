//! The status of a StatefulSet. Pure.

use std::sync::Arc;

use coracle_api::Map;
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use super::plan::{Names, is_up, revision_of};
use crate::views::{Pod, StatefulSet};
use crate::write_status::{number, put_count};

/// Computes the status; `retired` pods of the old template are about to be deleted.
pub(super) fn status(
    set: &StatefulSet,
    pods: &[Arc<Cached<Pod>>],
    names: &Names,
    retired: usize,
    now: Timestamp,
) -> Map {
    let of = |name: &str| {
        pods.iter()
            .filter(|pod| !pod.is_being_deleted && revision_of(pod) == name)
            .count()
    };

    let ready = pods.iter().filter(|pod| is_up(pod)).count();
    let seconds = set.min_ready_seconds();
    let available = pods
        .iter()
        .filter(|pod| is_up(pod) && pod.is_available(seconds, now))
        .count();

    let updated = of(&names.update);
    let all = set.replicas();

    // When all pods are of the update revision, it becomes the current one.
    let is_complete = set.rolls() && updated == all && ready == all && pods.len() == all;
    let (current, current_name) = match is_complete {
        true => (updated, &names.update),
        false => (of(&names.current).saturating_sub(retired), &names.current),
    };

    let mut status = set.status().cloned().unwrap_or_default();
    status.insert("observedGeneration", set.object.meta().generation());
    status.insert("replicas", number(pods.len()));
    put_count(&mut status, "readyReplicas", ready);
    status.insert("availableReplicas", number(available));

    put_count(&mut status, "currentReplicas", current);
    put_count(&mut status, "updatedReplicas", updated);
    status.insert("currentRevision", current_name.as_str());
    status.insert("updateRevision", names.update.as_str());
    status.set_if_nil("collisionCount", 0);

    status
}
