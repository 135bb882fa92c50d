//! Maps changes of claims to StatefulSets.

use coracle_client::{Change, Informer, Metadata, ObjectKey, WorkQueue};

use crate::framework::Feeds;
use crate::views::StatefulSet;

pub(super) fn follow(
    feeds: &mut Feeds,
    sets: &Informer<StatefulSet>,
    claims: &Informer<Metadata>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (all, woken) = (sets.clone(), queue.clone());
    feeds.follow(claims, move |change| {
        // A pod may have waited for the deletion of a claim of this name.
        if let Change::Deleted { object, .. } = change {
            let sets = all.list_namespace(&object.key.namespace);
            let waiting = sets.iter().filter(|set| !set.claim_templates().is_empty());
            waiting.for_each(|set| woken.add(set.key.clone()));
        }
    });
}
