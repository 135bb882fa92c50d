//! Maps changes to Deployments.

use std::sync::Arc;

use coracle_api::Map;
use coracle_client::{Cached, Change, Informer, ObjectKey, WorkQueue};

use crate::framework::{Creations, Feeds};
use crate::views::{BY_CONTROLLER, Deployment, Pod, ReplicaSet, Rollout};

type Queue = WorkQueue<ObjectKey>;

pub(super) fn follow(
    feeds: &mut Feeds,
    deployments: &Informer<Deployment>,
    sets: &Informer<ReplicaSet>,
    pods: &Informer<Pod>,
    creations: &Arc<Creations>,
    queue: &Queue,
) {
    let (creations, own_queue) = (creations.clone(), queue.clone());
    feeds.follow(deployments, move |change| {
        if let Change::Deleted { object, .. } = change {
            creations.forget(&object.uid);
        }
        if let Some(deployment) = change.object() {
            own_queue.add(deployment.key.clone());
        }
    });

    let listener = Listener {
        deployments: deployments.clone(),
        sets: sets.clone(),
        pods: pods.clone(),
        queue: queue.clone(),
    };
    let of_sets = listener.clone();
    feeds.follow(sets, move |change| of_sets.handle_set(change));
    feeds.follow(pods, move |change| listener.handle_pod(change));
}

#[derive(Clone)]
struct Listener {
    deployments: Informer<Deployment>,
    sets: Informer<ReplicaSet>,
    pods: Informer<Pod>,
    queue: Queue,
}

impl Listener {
    fn handle_set(&self, change: &Change<ReplicaSet>) {
        match change {
            Change::Added { object, .. } if object.is_being_deleted() => self.wake_owner(object),
            Change::Added { object, .. } => self.wake_for(object),
            Change::Updated { old, new } if old.version != new.version => {
                if old.controller != new.controller {
                    self.wake_owner(old);
                }
                let moved = old.controller != new.controller
                    || old.object.object.meta().labels() != new.object.object.meta().labels();
                if new.controller.is_some() || moved {
                    self.wake_for(new);
                }
            }
            Change::Deleted { object, .. } => self.wake_owner(object),
            Change::Updated { .. } | Change::Synced => {}
        }
    }

    /// Only a Deployment that waits for its last old pod to be deleted is woken by pods.
    fn handle_pod(&self, change: &Change<Pod>) {
        let pod = match change {
            Change::Deleted { object, .. } => object,
            Change::Updated { old, new } if old.phase != new.phase => new,
            _ => return,
        };

        let Some(set) = pod
            .controller
            .as_ref()
            .filter(|owner| owner.kind == "ReplicaSet")
        else {
            return;
        };

        let Some(set) = self
            .sets
            .get(&ObjectKey::new(&pod.key.namespace, &set.name))
        else {
            return;
        };

        let Some(deployment) = self.owner(&set) else {
            return;
        };
        if deployment.rollout() == Rollout::Recreate {
            let left = self
                .pods
                .by_index(BY_CONTROLLER, &set.uid)
                .unwrap_or_default();

            if left
                .iter()
                .all(|pod| !pod.is_active() && !pod.is_terminating())
            {
                self.queue.add(deployment.key.clone());
            }
        }
    }

    fn wake_for(&self, set: &Arc<Cached<ReplicaSet>>) {
        if set.controller.is_some() {
            self.wake_owner(set);
            return;
        }

        let none = Map::new();
        let labels = set.object.object.meta().labels().unwrap_or(&none);
        if labels.is_empty() {
            return;
        }

        let all = self.deployments.list_namespace(&set.key.namespace);
        let wanting = all
            .iter()
            .filter(|deployment| !deployment.selects_all() && deployment.selects(labels));
        wanting.for_each(|deployment| self.queue.add(deployment.key.clone()));
    }

    fn wake_owner(&self, set: &Cached<ReplicaSet>) {
        if let Some(deployment) = self.owner(set) {
            self.queue.add(deployment.key.clone());
        }
    }

    /// The controller of a ReplicaSet, matched by UID.
    fn owner(&self, set: &Cached<ReplicaSet>) -> Option<Arc<Cached<Deployment>>> {
        let owner = set
            .controller
            .as_ref()
            .filter(|owner| owner.kind == "Deployment")?;
        let deployment = self
            .deployments
            .get(&ObjectKey::new(&set.key.namespace, &owner.name))?;
        (deployment.uid == owner.uid).then_some(deployment)
    }
}
