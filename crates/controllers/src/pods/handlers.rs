//! Maps changes of pods to keys of their owners.

use std::sync::Arc;

use coracle_client::{Cached, Change, Informer, ObjectKey, WorkQueue};

use super::{PodOwner, Unobserved};
use crate::framework::Feeds;
use crate::views::Pod;

/// Wakes an owner when it changes itself.
pub fn follow_owners<O: PodOwner>(
    feeds: &mut Feeds,
    owners: &Informer<O>,
    unobserved: &Arc<Unobserved>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (queue, unobserved) = (queue.clone(), unobserved.clone());
    feeds.follow(owners, move |change| {
        let Some(owner) = change.object() else { return };
        if matches!(change, Change::Deleted { .. }) {
            unobserved.forget(&owner.uid);
        }
        queue.add(owner.key.clone());
    });
}

/// Wakes the owners of changed pods, and possible adopters of orphans; lowers expectations that are
/// met.
pub fn follow_pods<O: PodOwner>(
    feeds: &mut Feeds,
    owners: &Informer<O>,
    pods: &Informer<Pod>,
    unobserved: &Arc<Unobserved>,
    wake: impl Fn(&ObjectKey) + Send + 'static,
) {
    let listener = Listener {
        owners: owners.clone(),
        unobserved: unobserved.clone(),
        wake,
    };
    feeds.follow(pods, move |change| listener.handle(change));
}

struct Listener<O: Send + Sync + 'static, W> {
    owners: Informer<O>,
    unobserved: Arc<Unobserved>,
    wake: W,
}

impl<O: PodOwner, W: Fn(&ObjectKey)> Listener<O, W> {
    fn handle(&self, change: &Change<Pod>) {
        match change {
            // It was already being deleted when first observed: its creation was observed long ago.
            Change::Added { object, .. } if object.is_being_deleted => self.going(object),
            Change::Added { object, .. } => match self.owner(object) {
                Some(owner) => {
                    self.unobserved.expectations.creation_observed(&owner.uid);
                    (self.wake)(&owner.key);
                }
                // An orphan was not created by this controller: it meets no expectation.
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
            // It was released, or belongs to another owner now.
            self.owner(old)
                .iter()
                .for_each(|owner| (self.wake)(&owner.key));
        }

        match self.owner(new) {
            Some(owner) => (self.wake)(&owner.key),
            None if new.controller.is_none()
                && (old.labels != new.labels || old.controller != new.controller) =>
            {
                self.wake_all(new);
            }
            None => {}
        }
    }

    /// The deletion was observed, by its timestamp or by its event: both count once.
    fn going(&self, pod: &Arc<Cached<Pod>>) {
        if let Some(owner) = self.owner(pod) {
            self.unobserved
                .expectations
                .deletion_observed(&owner.uid, &pod.uid);
            (self.wake)(&owner.key);
        }
    }

    /// The controller of a pod, matched by UID.
    fn owner(&self, pod: &Cached<Pod>) -> Option<Arc<Cached<O>>> {
        let controller = pod
            .controller
            .as_ref()
            .filter(|controller| controller.kind == O::KIND)?;
        let owner = self
            .owners
            .get(&ObjectKey::new(&pod.key.namespace, &controller.name))?;
        (owner.uid == controller.uid).then_some(owner)
    }

    /// Wakes all possible adopters of an orphan.
    fn wake_all(&self, pod: &Cached<Pod>) {
        if pod.controller.is_some() {
            return;
        }
        let owners = self.owners.list_namespace(&pod.key.namespace);
        let wanting = owners
            .iter()
            .filter(|owner| owner.object.selects(&pod.labels));
        wanting.for_each(|owner| (self.wake)(&owner.key));
    }
}
