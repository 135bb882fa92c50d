//! The ReplicaSet controller: keeps the desired number of pods running.
//!
//! Changes of ReplicaSets and pods become keys ([`pods`](crate::pods)); `plan` decides; `act`
//! adopts and releases, creates and deletes, and writes the status computed by `status`.
//! ReplicationControllers use all of it too, read as ReplicaSets ([`Set`]).

mod act;
pub mod plan;
#[cfg(test)]
mod simulation;
pub mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Cached, Informer, ObjectKey, Resource, WorkQueue, World};
use tracing::warn;

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::own_writes::OwnWrites;
use crate::pods::{self, PodControl, PodOwner, Unobserved};
use crate::views::{BY_CONTROLLER, Pod, ReplicaSet, orphans_of};

/// A kind whose objects keep a number of pods running.
pub trait Set: PodOwner {
    /// The controller's name.
    const NAME: &'static str;
    /// Its service account, and the component of events.
    const ACCOUNT: &'static str;
    /// The plural of the resource, in the version of [`PodOwner::API_VERSION`].
    const PLURAL: &'static str;
    /// Whether the status has `terminatingReplicas`.
    const COUNTS_TERMINATING: bool;

    /// The object as a ReplicaSet.
    fn as_set(set: &Arc<Cached<Self>>) -> Arc<Cached<ReplicaSet>>;

    /// Its key in the index [`BY_CONTROLLER`].
    fn by_controller(set: &Cached<Self>) -> Vec<Text>;
}

impl Set for ReplicaSet {
    const NAME: &'static str = "replicaset-controller";
    const ACCOUNT: &'static str = "replicaset-controller";
    const PLURAL: &'static str = "replicasets";
    const COUNTS_TERMINATING: bool = true;

    fn as_set(set: &Arc<Cached<ReplicaSet>>) -> Arc<Cached<ReplicaSet>> {
        set.clone()
    }

    fn by_controller(set: &Cached<ReplicaSet>) -> Vec<Text> {
        ReplicaSet::by_controller(set)
    }
}

/// The controller.
pub struct ReplicaSets<S: Set> {
    sets: Informer<S>,
    pods: Informer<Pod>,
    set_access: Access,
    control: PodControl,
    unobserved: Arc<Unobserved>,
    written: Arc<OwnWrites>,
    world: World,
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run<S: Set>(context: &Context, workers: usize) {
    let queue = WorkQueue::new(S::PLURAL.trim_end_matches('s'));
    let mut feeds = Feeds::new();
    let controller = ReplicaSets::<S>::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl<S: Set> ReplicaSets<S> {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> ReplicaSets<S> {
        let (group, version) = S::API_VERSION
            .split_once('/')
            .unwrap_or(("", S::API_VERSION));
        let sets_of = Resource::builtin(group, version, S::PLURAL);
        let pods_of = Resource::builtin("", "v1", "pods");
        let sets: Informer<S> = context.informers.of(&sets_of);
        let pods: Informer<Pod> = context.informers.of(&pods_of);
        sets.ensure_index(BY_CONTROLLER, <S as Set>::by_controller);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);

        let unobserved = Arc::new(Unobserved::default());
        let written = Arc::new(OwnWrites::default());
        pods::follow_owners(feeds, &sets, &unobserved, queue);
        let woken = queue.clone();
        pods::follow_pods(feeds, &sets, &pods, &unobserved, move |key| {
            woken.add(key.clone())
        });
        let client = context.client(S::ACCOUNT);

        let set_access = client.resource(&sets_of);
        let control = PodControl::new(
            set_access.clone(),
            client.resource(&pods_of),
            unobserved.clone(),
            written.clone(),
            context.recorder.clone().component(S::ACCOUNT),
        );

        ReplicaSets {
            sets,
            pods,
            set_access,
            control,
            unobserved,
            written,
            world: context.world,
        }
    }

    fn pods_found(&self, value: &str) -> Vec<Arc<Cached<Pod>>> {
        self.pods
            .by_index(BY_CONTROLLER, value)
            .expect("the index is created with the controller")
    }

    /// How many active pods each node has of all sets with the same owner.
    fn neighbours(&self, set: &ReplicaSet, uid: &Text) -> BTreeMap<Text, usize> {
        let related: Vec<Text> = match &set.controller {
            None => vec![uid.clone()],
            Some(owner) => {
                let sets = self.sets.by_index(BY_CONTROLLER, &owner.uid);
                let sets = sets.expect("the index is created with the controller");
                sets.iter().map(|set| set.uid.clone()).collect()
            }
        };

        let mut nodes = BTreeMap::new();
        for pod in related
            .iter()
            .flat_map(|uid| self.pods_found(uid))
            .filter(|pod| pod.is_active())
        {
            *nodes.entry(pod.node.clone()).or_default() += 1;
        }

        nodes
    }
}

#[async_trait]
impl<S: Set> Controller for ReplicaSets<S> {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = S::NAME;

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(set) = self.sets.get(key) else {
            self.written.forget(key);
            return Observation::Absent;
        };

        if self.written.is_behind(
            key,
            &[
                (S::PLURAL, self.sets.version()),
                ("pods", self.pods.version()),
            ],
        ) {
            return Observation::Behind;
        }

        let set = S::as_set(&set);
        if set.selector.is_none() {
            warn!(%key, "invalid selector; not reconciled until it is changed");
            return Observation::Absent;
        }

        let mut pods = self.pods_found(&set.uid);
        pods.extend(self.pods_found(&orphans_of(&key.namespace)));
        let neighbours = self.neighbours(&set, &set.uid);
        let settled = self.unobserved.expectations.satisfied(&set.uid);

        let going = self.unobserved.expectations.pending_deletions(&set.uid);
        let observed = Observed {
            pods,
            neighbours,
            settled,
            going,
            set,
        };

        Observation::Present {
            uid: observed.set.uid.clone(),
            observed,
        }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        self.carry_out(key, &observed, plan).await
    }
}
