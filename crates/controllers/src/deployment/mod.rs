//! The Deployment controller: rolls out templates, with a ReplicaSet for each.
//!
//! `handlers` turns changes of Deployments, ReplicaSets and pods into keys; `plan` decides on one
//! step, using `revision` (which ReplicaSet is the newest), `sizes` (how large each should be) and
//! `status`; `act` carries it out.

mod act;
mod handlers;
pub mod plan;
pub mod revision;
pub mod sizes;
pub mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::resource_version::ResourceVersion;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use coracle_client::{Access, Informer, ObjectKey, Recorder, Resource, WorkQueue, World};

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::framework::{Context, Controller, Creations, Feeds, Observation, Requeue, Runner};
use crate::views::{BY_CONTROLLER, Deployment, Pod, ReplicaSet, orphans_of};

/// The service account.
pub(crate) const ACCOUNT: &str = "deployment-controller";

/// The controller.
pub struct Deployments {
    deployments: Informer<Deployment>,
    sets: Informer<ReplicaSet>,
    pods: Informer<Pod>,
    deployment_access: Access,
    set_access: Access,
    written: Mutex<BTreeMap<ObjectKey, Written>>,
    creations: Arc<Creations>,
    recorder: Recorder,
    world: World,
}

/// The newest versions that this controller has written for a Deployment.
#[derive(Clone, Copy, Default)]
struct Written {
    deployment: ResourceVersion,
    sets: ResourceVersion,
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("deployment");
    let mut feeds = Feeds::new();
    let controller = Deployments::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl Deployments {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> Deployments {
        let deployments_of = Resource::builtin("apps", "v1", "deployments");
        let sets_of = Resource::builtin("apps", "v1", "replicasets");
        let deployments: Informer<Deployment> = context.informers.of(&deployments_of);
        let sets: Informer<ReplicaSet> = context.informers.of(&sets_of);
        let pods: Informer<Pod> = context.informers.of(&Resource::builtin("", "v1", "pods"));

        sets.ensure_index(BY_CONTROLLER, ReplicaSet::by_controller);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);
        let creations = Arc::new(Creations::default());
        handlers::follow(feeds, &deployments, &sets, &pods, &creations, queue);
        let client = context.client(ACCOUNT);

        Deployments {
            deployments,
            sets,
            pods,
            deployment_access: client.resource(&deployments_of),
            set_access: client.resource(&sets_of),
            written: Mutex::new(BTreeMap::new()),
            creations,
            recorder: context.recorder.clone().component("deployment-controller"),
            world: context.world,
        }
    }

    /// Whether the caches are older than own writes.
    fn is_behind(&self, key: &ObjectKey) -> bool {
        let written = self.written.lock();
        let written = written.get(key).copied().unwrap_or_default();
        self.deployments.version() < written.deployment || self.sets.version() < written.sets
    }

    /// Notes a ReplicaSet that was written, or found to have been.
    fn note_set(&self, key: &ObjectKey, set: &Value) {
        self.note_set_version(
            key,
            set.meta().resource_version().parse().unwrap_or_default(),
        );
    }

    fn note_set_version(&self, key: &ObjectKey, version: ResourceVersion) {
        self.note_written(key, |written| written.sets = written.sets.max(version));
    }

    fn note_written(&self, key: &ObjectKey, note: impl FnOnce(&mut Written)) {
        let mut written = self.written.lock();
        note(written.entry(key.clone()).or_default());
    }
}

#[async_trait]
impl Controller for Deployments {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "deployment-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(deployment) = self.deployments.get(key) else {
            self.written.lock().remove(key);
            return Observation::Absent;
        };

        if self.is_behind(key) {
            return Observation::Behind;
        }

        if deployment.selector.is_none() {
            tracing::warn!(%key, "invalid selector; not reconciled until it is changed");
            return Observation::Absent;
        }

        let found = |value: &str| {
            self.sets
                .by_index(BY_CONTROLLER, value)
                .expect("the index is created with the controller")
        };
        let mut sets = found(&deployment.uid);
        sets.extend(found(&orphans_of(&key.namespace)));

        let running = sets.iter().map(|set| {
            let pods = self.pods.by_index(BY_CONTROLLER, &set.uid);
            let pods = pods.expect("the index is created with the controller");
            let running = pods
                .iter()
                .filter(|pod| pod.is_active() || pod.is_terminating())
                .count();
            (set.uid.clone(), running)
        });
        let running = running.collect();

        Observation::Present {
            uid: deployment.uid.clone(),
            observed: Observed {
                deployment,
                sets,
                running,
            },
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
