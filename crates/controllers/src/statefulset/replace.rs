//! Which pods of an old template are replaced next. Pure.

use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_client::Cached;

use super::plan::{Names, Numbered, revision_of};
use crate::views::{Pod, StatefulSet};

/// The pods to delete, so that they are recreated from the current template.
pub(super) fn victims(
    set: &StatefulSet,
    numbered: &Numbered,
    names: &Names,
    now: Timestamp,
) -> Vec<Arc<Cached<Pod>>> {
    let is_down = |pod: Option<&Arc<Cached<Pod>>>| {
        pod.is_none_or(|pod| {
            pod.is_being_deleted || !pod.is_available(set.min_ready_seconds(), now)
        })
    };

    let first = set.start() + set.partition().unwrap_or_default();
    let from_the_last = numbered
        .wanted
        .iter()
        .rev()
        .filter(|(ordinal, _)| **ordinal >= first);
    let from_the_last = from_the_last.map(|(_, pod)| pod.as_ref());

    let is_old =
        |pod: &Arc<Cached<Pod>>| revision_of(pod) != names.update.as_str() && !pod.is_being_deleted;
    let Some(allowed) = set.max_unavailable() else {
        // One at a time, and none while a new one is unavailable.
        for pod in from_the_last {
            match pod {
                Some(pod) if is_old(pod) => return vec![pod.clone()],
                pod if is_down(pod) => return Vec::new(),
                _ => {}
            }
        }

        return Vec::new();
    };

    let down = numbered
        .wanted
        .values()
        .filter(|pod| is_down(pod.as_ref()))
        .count();

    from_the_last
        .flatten()
        .filter(|pod| is_old(pod))
        .take(allowed.saturating_sub(down))
        .cloned()
        .collect()
}
