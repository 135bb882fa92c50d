//! Which pods of an old template are replaced next. Pure.

use std::sync::Arc;

use coracle_api::Text;
use coracle_client::Cached;

use super::fit::Fit;
use super::plan::{OnNode, Pods, View};
use crate::views::Pod;

/// A pod, if there is one.
type MaybePod = Option<Arc<Cached<Pod>>>;

/// The new and the old pod of a node; `None` if there is more than one of a kind, which a later
/// reconcile resolves.
fn pair(view: &View<'_>, there: &OnNode) -> Option<(MaybePod, MaybePod)> {
    let (mut new, mut old): (MaybePod, MaybePod) = (None, None);
    for pod in there.iter().filter(|pod| !pod.is_being_deleted) {
        let place = if view.is_updated(pod) {
            &mut new
        } else {
            &mut old
        };
        if place.replace(pod.clone()).is_some() {
            return None;
        }
    }

    Some((new, old))
}

/// The nodes that have or should have a pod, with their pods.
fn nodes<'a>(view: &'a View<'_>) -> impl Iterator<Item = (&'a Text, &'a OnNode)> {
    static NONE: OnNode = Vec::new();
    let empty = view
        .fits
        .iter()
        .filter(|(node, fit)| **fit == Fit::Runs && !view.by_node.contains_key(*node));
    view.by_node
        .iter()
        .chain(empty.map(|(node, _)| (node, &NONE)))
}

/// What is replaced next.
pub(super) fn replace(view: &View<'_>) -> Pods {
    let wanted = view.wanted();
    match view.set.surge(wanted) {
        0 => with_gaps(view, view.set.unavailable(wanted)),
        surge => with_surge(view, surge, wanted),
    }
}

/// The old pod is deleted first. One that is unavailable may always be deleted.
fn with_gaps(view: &View<'_>, allowed: usize) -> Pods {
    let mut unavailable = 0;
    let (mut broken, mut candidates) = (Vec::new(), Vec::new());
    for (_, there) in nodes(view) {
        match pair(view, there) {
            None | Some((None, None) | (Some(_), Some(_))) => unavailable += 1,
            Some((Some(new), None)) => unavailable += usize::from(!view.is_available(&new)),
            Some((None, Some(old))) if !view.is_available(&old) => {
                broken.push(old);
                unavailable += 1;
            }
            Some((None, Some(old))) => candidates.push(old),
        }
    }

    candidates.truncate(allowed.saturating_sub(unavailable));
    broken.extend(candidates);

    Pods {
        delete: broken,
        ..Pods::default()
    }
}

/// The new pod is created first, and the old one is deleted when the new one is available.
fn with_surge(view: &View<'_>, surge: usize, wanted: usize) -> Pods {
    let mut pods = Pods::default();
    let (mut surging, mut available) = (0, 0);

    let (mut candidates, mut misplaced) = (Vec::new(), Vec::new());
    for (node, there) in nodes(view) {
        let Some((new, old)) = pair(view, there) else {
            surging += 1;
            continue;
        };

        let serves = old
            .as_ref()
            .or(new.as_ref())
            .is_some_and(|pod| view.is_available(pod));
        available += usize::from(serves);

        let runs = view.fits.get(node) == Some(&Fit::Runs);
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) => match (serves, runs) {
                (false, false) => pods.delete.push(old),
                (false, true) => pods.create.push(node.clone()),
                (true, false) => misplaced.push(old),
                (true, true) => candidates.push(node.clone()),
            },
            (Some(new), Some(old)) if view.is_available(&new) => pods.delete.push(old),
            (Some(_), Some(_)) => surging += 1,
        }
    }

    misplaced.truncate(available.saturating_sub(wanted));
    pods.delete.extend(misplaced);
    candidates.truncate(surge.saturating_sub(surging));
    pods.create.extend(candidates);

    pods
}
