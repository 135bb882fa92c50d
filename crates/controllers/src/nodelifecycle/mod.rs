//! The node lifecycle controller: detects nodes without heartbeat, and sets their conditions and
//! taints.
//!
//! `handlers` notes every heartbeat (lease renewed, status posted) and every change of readiness;
//! `plan` decides what one node needs; `act` writes it. The eviction rate depends on the `zones`.
//! Nothing polls: a node is reconciled when it changes, and when its grace period would end.

mod act;
mod handlers;
pub mod plan;
#[cfg(test)]
mod tests;
pub mod zones;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use coracle_client::{
    Access, Informer, ObjectKey, Recorder, Resource, Selection, WorkQueue, World,
};

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::{BY_NODE, Node, Pod};
use handlers::{Heartbeats, Lease};
use zones::Zones;

/// The service account.
pub(crate) const ACCOUNT: &str = "node-controller";

/// The number of workers.
const WORKERS: usize = 8;

/// Grace periods and eviction rates. The defaults are upstream's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How long a node may go without heartbeat before its state is unknown.
    pub monitor_grace: Duration,
    /// The same for a node that has never posted a status.
    pub startup_grace: Duration,
    /// Nodes of a zone that may be tainted per second.
    pub eviction_rate: f64,
    /// The same for a partially disrupted zone.
    pub secondary_eviction_rate: f64,
    /// A partially disrupted zone with up to this many nodes is not tainted at all.
    pub large_cluster_size: usize,
    /// The share of not ready nodes from which on a zone is partially disrupted.
    pub unhealthy_zone_threshold: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            monitor_grace: Duration::from_secs(50),
            startup_grace: Duration::from_secs(60),
            eviction_rate: 0.1,
            secondary_eviction_rate: 0.01,
            large_cluster_size: 50,
            unhealthy_zone_threshold: 0.55,
        }
    }
}

/// The controller. Its keys are nodes.
pub struct NodeLifecycle {
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    node_access: Access,
    pod_access: Access,
    recorder: Recorder,
    world: World,
    config: Config,
    shared: Arc<Shared>,
}

/// State shared by handlers and actions.
#[derive(Default)]
struct Shared {
    heartbeats: Mutex<Heartbeats>,
    /// Nodes whose pods are to be marked as not ready.
    to_mark: Mutex<BTreeSet<Text>>,
    zones: Mutex<Zones>,
}

impl Shared {
    fn heartbeats<R>(&self, with: impl FnOnce(&mut Heartbeats) -> R) -> R {
        with(&mut self.heartbeats.lock())
    }

    fn to_mark<R>(&self, with: impl FnOnce(&mut BTreeSet<Text>) -> R) -> R {
        with(&mut self.to_mark.lock())
    }

    fn zones<R>(&self, with: impl FnOnce(&mut Zones) -> R) -> R {
        with(&mut self.zones.lock())
    }
}

/// Runs the controller. Never returns.
pub async fn run(context: &Context, config: Config) {
    let queue = WorkQueue::new("node_lifecycle_controller");
    let mut feeds = Feeds::new();
    let controller = NodeLifecycle::new(context, config, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, WORKERS)
        .await;
}

impl NodeLifecycle {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        config: Config,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> NodeLifecycle {
        let core = |plural| Resource::builtin("", "v1", plural);
        let nodes: Informer<Node> = context.informers.of(&core("nodes"));
        let pods: Informer<Pod> = context.informers.of(&core("pods"));
        pods.ensure_index(BY_NODE, Pod::by_node);
        let leases = Resource::builtin("coordination.k8s.io", "v1", "leases");
        let leases: Informer<Lease> = context
            .informers
            .of(Selection::all(&leases).namespace("kube-node-lease"));

        let client = context.client(ACCOUNT);
        let controller = NodeLifecycle {
            node_access: client.resource(&core("nodes")),
            pod_access: client.resource(&core("pods")),
            recorder: context.recorder.clone().component("node-controller"),
            world: context.world,
            config,
            shared: Arc::default(),
            nodes,
            pods,
        };
        handlers::follow(&controller, feeds, &leases, queue);

        controller
    }
}

#[async_trait]
impl Controller for NodeLifecycle {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "node-lifecycle-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(node) = self.nodes.get(key) else {
            return Observation::Absent;
        };
        let marked = self.shared.to_mark(|to_mark| to_mark.contains(&key.name));
        let pods = || {
            self.pods
                .by_index(BY_NODE, &key.name)
                .expect("the index is created with the controller")
        };

        let observed = Observed {
            last_heartbeat: self
                .shared
                .heartbeats(|heartbeats| heartbeats.last_heartbeat(&key.name, self.world.now())),
            config: self.config,
            all_down: self.shared.zones(|zones| zones.all_down()),
            to_mark: marked.then(pods),
            node,
        };

        Observation::Present {
            uid: observed.node.uid.clone(),
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
