//! Which ReplicaSets a change concerns.

use std::sync::Arc;

use coracle_client::{Cached, Change, Expectations, Informer, ObjectKey, WorkQueue};

use crate::frame::Feeds;
use crate::views::{Pod, ReplicaSet};

type Queue = WorkQueue<ObjectKey>;

pub(super) fn follow(
    feeds: &mut Feeds,
    sets: &Informer<ReplicaSet>,
    pods: &Informer<Pod>,
    queue: &Queue,
    expectations: &Arc<Expectations<ObjectKey>>,
) {
    let (own_queue, own_expectations) = (queue.clone(), expectations.clone());
    feeds.follow(sets, move |change| {
        let Some(set) = change.object() else { return };
        if matches!(change, Change::Deleted { .. }) {
            // One of the same name starts clean.
            own_expectations.forget(&set.key);
        }
        own_queue.add(set.key.clone());
    });
    let listener = Pods { sets: sets.clone(), queue: queue.clone(), expectations: expectations.clone() };
    feeds.follow(pods, move |change| listener.hear(&change));
}

struct Pods {
    sets: Informer<ReplicaSet>,
    queue: Queue,
    expectations: Arc<Expectations<ObjectKey>>,
}

impl Pods {
    fn hear(&self, change: &Change<Pod>) {
        match change {
            // One that was going already when it was first seen: its creation was seen long ago.
            Change::Added { object, .. } if object.is_being_deleted => self.going(object),
            Change::Added { object, .. } => match self.owner(object) {
                Some(set) => {
                    self.expectations.creation_observed(&set.key);
                    self.queue.add(set.key.clone());
                }
                // An orphan was created by somebody else: it counts for no expectation.
                None => self.wake_all(object),
            },
            Change::Updated { old, new } if old.version != new.version => self.changed(old, new),
            Change::Deleted { object, .. } => self.going(object),
            Change::Updated { .. } | Change::Synced => {}
        }
    }

    fn changed(&self, old: &Arc<Cached<Pod>>, new: &Arc<Cached<Pod>>) {
        if new.is_being_deleted {
            self.going(new);
            if old.labels != new.labels {
                self.going(old);
            }
            return;
        }
        if old.controller != new.controller {
            // It is another's now, or nobody's.
            self.owner(old).iter().for_each(|set| self.queue.add(set.key.clone()));
        }
        match self.owner(new) {
            Some(set) => self.queue.add(set.key.clone()),
            None if new.controller.is_none()
                && (old.labels != new.labels || old.controller != new.controller) =>
            {
                self.wake_all(new);
            }
            None => {}
        }
    }

    /// Its deletion has been seen, by its mark or by its end: both count once.
    fn going(&self, pod: &Arc<Cached<Pod>>) {
        if let Some(set) = self.owner(pod) {
            self.expectations.deletion_observed(&set.key, &pod.uid);
            self.queue.add(set.key.clone());
        }
    }

    /// The very ReplicaSet that controls a pod.
    fn owner(&self, pod: &Cached<Pod>) -> Option<Arc<Cached<ReplicaSet>>> {
        let controller = pod.controller.as_ref().filter(|controller| controller.kind == "ReplicaSet")?;
        let set = self.sets.get(&ObjectKey::new(&pod.key.namespace, &controller.name))?;
        (set.uid == controller.uid).then_some(set)
    }

    /// Whoever may adopt an orphan looks at it.
    fn wake_all(&self, pod: &Cached<Pod>) {
        if pod.controller.is_some() {
            return;
        }
        let sets = self.sets.list_namespace(&pod.key.namespace);
        sets.iter().filter(|set| set.selects(&pod.labels)).for_each(|set| self.queue.add(set.key.clone()));
    }
}
