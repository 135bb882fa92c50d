//! The ReplicaSet controller: keeps as many pods of a kind as it was told.
//!
//! `hear` turns changes of ReplicaSets and pods into keys, and notes what has been seen of what was set in motion; `plan`
//! decides; `act` adopts and releases, creates and deletes, and writes the status that `status` works out.

mod act;
mod hear;
pub mod plan;
mod rank;
pub mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::resource_version::ResourceVersion;
use coracle_api::time::Timestamp;
use coracle_client::{
    Access, Cached, Expectations, Informer, ObjectKey, Recorder, Resource, WorkQueue, World,
};
use tracing::warn;

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::frame::{Context, Controller, Feeds, Observation, Requeue, Shell};
use crate::views::{BY_CONTROLLER, Pod, ReplicaSet, orphans_of};

/// The controller.
pub struct ReplicaSets {
    sets: Informer<ReplicaSet>,
    pods: Informer<Pod>,
    set_access: Access,
    pod_access: Access,
    expectations: Arc<Expectations<ObjectKey>>,
    written: Mutex<BTreeMap<ObjectKey, Written>>,
    recorder: Recorder,
    world: World,
}

/// The newest versions that this controller has itself written for a ReplicaSet.
#[derive(Clone, Copy, Default)]
struct Written {
    set: ResourceVersion,
    pods: ResourceVersion,
}

/// Begins the controller, with so many workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("replicaset");
    let mut feeds = Feeds::new(context.tasks.clone());
    let controller = ReplicaSets::new(context, &queue, &mut feeds);
    Shell::new(controller, queue, context).run(feeds, workers).await;
}

impl ReplicaSets {
    /// The controller, whose feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> ReplicaSets {
        let sets_of = Resource::builtin("apps", "v1", "replicasets");
        let pods_of = Resource::builtin("", "v1", "pods");
        let sets: Informer<ReplicaSet> = context.informers.of(&sets_of);
        let pods: Informer<Pod> = context.informers.of(&pods_of);
        sets.ensure_index(BY_CONTROLLER, ReplicaSet::by_controller);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);
        let client = context.client("replicaset-controller");
        let expectations = Arc::new(Expectations::new());
        hear::follow(feeds, &sets, &pods, queue, &expectations);
        ReplicaSets {
            sets,
            pods,
            set_access: client.resource(&sets_of),
            pod_access: client.resource(&pods_of),
            expectations,
            written: Mutex::new(BTreeMap::new()),
            recorder: context.recorder.clone().component("replicaset-controller"),
            world: context.world,
        }
    }

    fn pods_found(&self, value: &str) -> Vec<Arc<Cached<Pod>>> {
        self.pods.by_index(BY_CONTROLLER, value).expect("the index was made with the controller")
    }

    /// How many active pods each node has of all ReplicaSets that have the same owner.
    fn neighbours(&self, set: &Arc<Cached<ReplicaSet>>) -> BTreeMap<Text, usize> {
        let related = match &set.controller {
            None => vec![set.clone()],
            Some(owner) => {
                self.sets.by_index(BY_CONTROLLER, &owner.uid).expect("the index was made with the controller")
            }
        };
        let mut nodes = BTreeMap::new();
        for pod in related.iter().flat_map(|set| self.pods_found(&set.uid)).filter(|pod| pod.is_active()) {
            *nodes.entry(pod.node.clone()).or_default() += 1;
        }
        nodes
    }

    /// Whether what is held is older than what was written from here.
    fn is_behind(&self, key: &ObjectKey) -> bool {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = written.get(key).copied().unwrap_or_default();
        self.sets.version() < written.set || self.pods.version() < written.pods
    }

    fn note_written(&self, key: &ObjectKey, note: impl FnOnce(&mut Written)) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        note(written.entry(key.clone()).or_default());
    }
}

#[async_trait]
impl Controller for ReplicaSets {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "replicaset-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(set) = self.sets.get(key) else {
            self.expectations.forget(key);
            self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            return Observation::Gone;
        };
        if self.is_behind(key) {
            return Observation::Behind;
        }
        if set.selector.is_none() {
            warn!(%key, "the selector makes no sense: nothing is done before it is changed");
            return Observation::Gone;
        }
        let mut pods = self.pods_found(&set.uid);
        pods.extend(self.pods_found(&orphans_of(&key.namespace)));
        let neighbours = self.neighbours(&set);
        let settled = self.expectations.satisfied(key);
        Observation::Seen { uid: set.uid.clone(), observed: Observed { set, pods, neighbours, settled } }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn act(&self, key: &ObjectKey, observed: Observed, plan: Plan) -> Result<Requeue, ActError> {
        self.carry_out(key, &observed, plan).await
    }
}
