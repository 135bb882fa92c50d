//! Maps changes of nodes to DaemonSets.

use coracle_client::{Change, Informer, ObjectKey, WorkQueue};

use super::fit::Constraints;
use crate::framework::Feeds;
use crate::views::{DaemonSet, Node};

pub(super) fn follow(
    feeds: &mut Feeds,
    sets: &Informer<DaemonSet>,
    nodes: &Informer<Node>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (all, woken) = (sets.clone(), queue.clone());
    feeds.follow(nodes, move |change| handle_node(&all, change, &woken));
}

/// Wakes a DaemonSet only if the change alters whether it fits the node; nodes change all the time.
fn handle_node(sets: &Informer<DaemonSet>, change: &Change<Node>, woken: &WorkQueue<ObjectKey>) {
    let (before, after) = match change {
        Change::Added { object, .. } | Change::Deleted { object, .. } => (None, object),
        Change::Updated { old, new } if old.labels != new.labels || old.taints != new.taints => {
            (Some(old), new)
        }
        Change::Updated { .. } | Change::Synced => return,
    };

    for set in sets.list() {
        let constraints = Constraints::of(&set);
        if before.is_none_or(|before| constraints.fit(before) != constraints.fit(after)) {
            woken.add(set.key.clone());
        }
    }
}
