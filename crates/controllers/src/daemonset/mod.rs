//! The DaemonSet controller: one pod on every node that fits.
//!
//! [`Revised`] turns changes of DaemonSets, pods and revisions into keys, `handlers` those of
//! nodes; `plan` decides, using `fit` (which nodes), `rolling` (what is replaced next) and
//! `status`; `act` carries it out. `backoff` delays the replacement of pods that keep failing.

mod act;
mod backoff;
pub mod fit;
mod handlers;
pub mod plan;
mod rolling;
mod status;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_client::{Informer, ObjectKey, Resource, WorkQueue, World};

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::history::{Names, Revised};
use crate::views::{DaemonSet, Node};
use backoff::FailureBackoff;

/// The service account.
pub(crate) const ACCOUNT: &str = "daemon-set-controller";

/// The label of pods and revisions with the hash of their template.
pub const HASH: &str = "controller-revision-hash";
/// The resource name under which own writes of DaemonSets are noted.
const SETS: &str = "daemonsets";

/// The controller.
pub struct DaemonSets {
    own: Revised<DaemonSet>,
    nodes: Informer<Node>,
    backoff: FailureBackoff,
    world: World,
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("daemonset");
    let mut feeds = Feeds::new();
    let controller = DaemonSets::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl DaemonSets {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> DaemonSets {
        let names = Names {
            plural: SETS,
            account: ACCOUNT,
            component: "daemonset-controller",
            hash: HASH,
        };
        let own = Revised::follow(context, &names, queue, feeds);

        let nodes = context.informers.of(&Resource::builtin("", "v1", "nodes"));
        handlers::follow(feeds, &own.sets, &nodes, queue);

        DaemonSets {
            own,
            nodes,
            backoff: FailureBackoff::default(),
            world: context.world,
        }
    }
}

/// The generation that a status was written for: the backoff starts over with each.
fn acted_on(set: &DaemonSet) -> i64 {
    set.object
        .at(&["status", "observedGeneration"])
        .and_then(Value::as_int)
        .unwrap_or_default()
}

#[async_trait]
impl Controller for DaemonSets {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "daemonset-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(set) = self.own.sets.get(key) else {
            self.own.written.forget(key);
            let left = self.own.sets.list();
            self.backoff
                .forget(|uid| left.iter().all(|set| set.uid != *uid));
            return Observation::Absent;
        };

        if self.own.is_behind(key) {
            return Observation::Behind;
        }

        let observed = Observed {
            nodes: self.nodes.list(),
            pods: self.own.pods_of(&set),
            revisions: self.own.revisions_of(&set),
            settled: self.own.unobserved.expectations.satisfied(&set.uid),
            backoff: self.backoff.of(&set.uid, acted_on(&set)),
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
