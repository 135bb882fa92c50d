//! The status of a DaemonSet. Pure.

use coracle_api::{Map, Value};

use super::fit::Fit;
use super::plan::View;
use crate::write_status::{number, put_count};

/// Computes the status, except for the observed generation.
pub(super) fn status(view: &View<'_>) -> Map {
    let (mut current, mut misplaced, mut ready, mut available, mut updated) = (0, 0, 0, 0, 0);
    for (node, fit) in &view.fits {
        let Some(pod) = view.by_node.get(node).and_then(|there| there.first()) else {
            continue;
        };

        if *fit != Fit::Runs {
            misplaced += 1;
            continue;
        }

        current += 1;
        ready += usize::from(pod.is_ready());
        available += usize::from(view.is_available(pod));
        updated += usize::from(view.is_updated(pod));
    }

    let wanted = view.wanted();
    let before = view.set.object.get("status").and_then(Value::as_object);
    let mut status = before.cloned().unwrap_or_default();
    status.insert("desiredNumberScheduled", number(wanted));
    status.insert("currentNumberScheduled", number(current));

    status.insert("numberMisscheduled", number(misplaced));
    status.insert("numberReady", number(ready));
    put_count(&mut status, "updatedNumberScheduled", updated);
    put_count(&mut status, "numberAvailable", available);
    put_count(&mut status, "numberUnavailable", wanted - available);

    status
}
