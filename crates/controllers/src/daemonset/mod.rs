//! The DaemonSet controller: one pod on every node that fits.
//!
//! `hear` turns changes of DaemonSets, pods, nodes and revisions into keys; `plan` decides, with the help of `fit`
//! (which nodes), `rolling` (what is replaced next) and `status`; `act` does it. `patience` keeps pods that fail at once
//! from being replaced as fast as they fail.

mod act;
pub mod fit;
mod hear;
mod patience;
pub mod plan;
mod rolling;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Informer, ObjectKey, Recorder, Resource, WorkQueue, World};

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::frame::{Context, Controller, Feeds, Observation, Requeue, Shell};
use crate::history::{Revision, Revisions};
use crate::own_writes::OwnWrites;
use crate::pods::{self, PodControl, Unseen};
use crate::views::{BY_CONTROLLER, DaemonSet, Node, Pod, orphans_of};
use patience::Patience;

/// The label of pods and revisions that says which template they are of.
pub const HASH: &str = "controller-revision-hash";
/// The controller's account, and the component in its events.
const ACCOUNT: &str = "daemon-set-controller";
/// What own writes of DaemonSets are noted under.
const SETS: &str = "daemonsets";

/// The controller.
pub struct DaemonSets {
    sets: Informer<DaemonSet>,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    revisions: Informer<Revision>,
    set_access: Access,
    control: PodControl,
    history: Revisions,
    unseen: Arc<Unseen>,
    written: Arc<OwnWrites>,
    patience: Patience,
    recorder: Recorder,
    world: World,
}

/// Begins the controller, with so many workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("daemonset");
    let mut feeds = Feeds::new(context.tasks.clone());
    let controller = DaemonSets::new(context, &queue, &mut feeds);
    Shell::new(controller, queue, context).run(feeds, workers).await;
}

impl DaemonSets {
    /// The controller, whose feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> DaemonSets {
        let sets_of = Resource::builtin("apps", "v1", SETS);
        let pods_of = Resource::builtin("", "v1", "pods");
        let revisions_of = Resource::builtin("apps", "v1", "controllerrevisions");
        let sets: Informer<DaemonSet> = context.informers.of(&sets_of);
        let nodes: Informer<Node> = context.informers.of(&Resource::builtin("", "v1", "nodes"));
        let pods: Informer<Pod> = context.informers.of(&pods_of);
        let revisions: Informer<Revision> = context.informers.of(&revisions_of);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);
        revisions.ensure_index(BY_CONTROLLER, Revision::by_controller);
        let unseen = Arc::new(Unseen::default());
        let written = Arc::new(OwnWrites::default());
        pods::follow_owners(feeds, &sets, &unseen, queue);
        let woken = queue.clone();
        pods::follow_pods(feeds, &sets, &pods, &unseen, move |key| woken.add(key.clone()));
        hear::follow(feeds, &sets, &nodes, &revisions, queue);
        let client = context.client(ACCOUNT);
        let set_access = client.resource(&sets_of);
        let recorder = context.recorder.clone().component("daemonset-controller");
        DaemonSets {
            sets,
            nodes,
            pods,
            revisions,
            control: PodControl::new(
                set_access.clone(),
                client.resource(&pods_of),
                unseen.clone(),
                written.clone(),
                recorder.clone(),
            ),
            history: Revisions::new(
                set_access.clone(),
                client.resource(&revisions_of),
                written.clone(),
                HASH,
            ),
            set_access,
            unseen,
            written,
            patience: Patience::default(),
            recorder,
            world: context.world,
        }
    }

    fn is_behind(&self, key: &ObjectKey) -> bool {
        let held = [
            (SETS, self.sets.version()),
            ("pods", self.pods.version()),
            ("controllerrevisions", self.revisions.version()),
        ];
        self.written.is_behind(key, &held)
    }
}

/// The generation that a status was written for: patience begins anew with each.
fn acted_on(set: &DaemonSet) -> i64 {
    set.object.at(&["status", "observedGeneration"]).and_then(Value::as_int).unwrap_or_default()
}

#[async_trait]
impl Controller for DaemonSets {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "daemonset-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(set) = self.sets.get(key) else {
            self.written.forget(key);
            let left = self.sets.list();
            self.patience.forget(|uid| left.iter().all(|set| set.uid != *uid));
            return Observation::Gone;
        };
        if self.is_behind(key) {
            return Observation::Behind;
        }
        let own = [set.uid.to_string(), orphans_of(&key.namespace)];
        let pods = own.iter().flat_map(|value| {
            self.pods.by_index(BY_CONTROLLER, value).expect("the index was made with the controller")
        });
        let revisions = own.iter().flat_map(|value| {
            self.revisions.by_index(BY_CONTROLLER, value).expect("the index was made with the controller")
        });
        let observed = Observed {
            nodes: self.nodes.list(),
            pods: pods.collect(),
            revisions: revisions.collect(),
            settled: self.unseen.expectations.satisfied(&set.uid),
            patience: self.patience.of(&set.uid, acted_on(&set)),
            set,
        };
        Observation::Seen { uid: observed.set.uid.clone(), observed }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn act(&self, key: &ObjectKey, observed: Observed, plan: Plan) -> Result<Requeue, ActError> {
        self.carry_out(key, &observed, plan).await
    }
}
