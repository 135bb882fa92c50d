//! Which StatefulSets a change concerns.

use std::sync::Arc;

use coracle_client::{Change, Informer, Metadata, ObjectKey, WorkQueue};

use crate::frame::Feeds;
use crate::history::Revision;
use crate::pods::{Unseen, follow_owners, follow_pods};
use crate::views::{Pod, StatefulSet};

pub(super) fn follow(
    feeds: &mut Feeds,
    sets: &Informer<StatefulSet>,
    pods: &Informer<Pod>,
    revisions: &Informer<Revision>,
    claims: &Informer<Metadata>,
    unseen: &Arc<Unseen>,
    queue: &WorkQueue<ObjectKey>,
) {
    follow_owners(feeds, sets, unseen, queue);
    let woken = queue.clone();
    follow_pods(feeds, sets, pods, unseen, move |key| woken.add(key.clone()));
    let (all, woken) = (sets.clone(), queue.clone());
    feeds.follow(revisions, move |change| {
        let Some(revision) = change.object() else { return };
        let owner = revision.controller.as_ref().filter(|owner| owner.kind == "StatefulSet");
        let Some(owner) = owner else { return };
        let key = ObjectKey::new(&revision.key.namespace, &owner.name);
        if all.get(&key).is_some_and(|set| set.uid == owner.uid) {
            woken.add(key);
        }
    });
    let (all, woken) = (sets.clone(), queue.clone());
    feeds.follow(claims, move |change| {
        // A pod may have waited for a claim of its name to go.
        if let Change::Deleted { object, .. } = change {
            let sets = all.list_namespace(&object.key.namespace);
            let waiting = sets.iter().filter(|set| !set.claim_templates().is_empty());
            waiting.for_each(|set| woken.add(set.key.clone()));
        }
    });
}
