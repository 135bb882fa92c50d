//! The StatefulSet controller: pods with ordinals, stable names and claims.
//!
//! [`Revised`] turns changes of StatefulSets, pods and revisions into keys, `handlers` those of
//! claims; `plan` decides, using `replace` (what is replaced next), `identity` (name, labels and
//! claims of a pod) and `status`; `act` carries it out.

mod act;
mod handlers;
mod identity;
pub mod plan;
mod replace;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Cached, Informer, Metadata, ObjectKey, Resource, WorkQueue};

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::history::{Names, Revised};
use crate::views::{Pod, StatefulSet};
use identity::claim_name;

/// The label of pods with the name of their revision.
pub const POD_REVISION: &str = "controller-revision-hash";
/// The label of revisions with the hash.
const HASH: &str = "controller.kubernetes.io/hash";
/// The service account, and the component of events.
pub(crate) const ACCOUNT: &str = "statefulset-controller";
/// The resource name under which own writes are noted.
const SETS: &str = "statefulsets";
const CLAIMS: &str = "persistentvolumeclaims";

/// The controller.
pub struct StatefulSets {
    own: Revised<StatefulSet>,
    claims: Informer<Metadata>,
    claim_access: Access,
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("statefulset");
    let mut feeds = Feeds::new();
    let controller = StatefulSets::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl StatefulSets {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> StatefulSets {
        let claims_of = Resource::builtin("", "v1", CLAIMS);
        let claims: Informer<Metadata> = context.informers.of(&claims_of);

        // Pod names are fixed: nothing can be created twice, so no expectations are needed.
        let names = Names {
            plural: SETS,
            account: ACCOUNT,
            component: ACCOUNT,
            hash: HASH,
        };
        let own = Revised::follow(context, &names, queue, feeds);
        handlers::follow(feeds, &own.sets, &claims, queue);

        StatefulSets {
            own,
            claims,
            claim_access: context.client(ACCOUNT).resource(&claims_of),
        }
    }

    fn is_behind(&self, key: &ObjectKey) -> bool {
        self.own.is_behind(key)
            || self
                .own
                .written
                .is_behind(key, &[(CLAIMS, self.claims.version())])
    }

    /// The existing claims of its pods.
    fn claims_of(
        &self,
        set: &Cached<StatefulSet>,
        pods: &[Arc<Cached<Pod>>],
    ) -> BTreeMap<coracle_api::Text, Arc<Cached<Metadata>>> {
        let there = pods.iter().filter_map(|pod| set.ordinal_of(&pod.key.name));
        let wanted = set.start()..set.start() + set.replicas();
        let ordinals: std::collections::BTreeSet<usize> = wanted.chain(there).collect();
        let names = set.claim_templates().iter().flat_map(|template| {
            ordinals
                .iter()
                .map(|ordinal| claim_name(set, template.meta().name(), *ordinal))
        });
        let keys = names.map(|name| ObjectKey::new(&set.key.namespace, &name));

        keys.filter_map(|key| self.claims.get(&key))
            .map(|claim| (claim.key.name.clone(), claim))
            .collect()
    }
}

#[async_trait]
impl Controller for StatefulSets {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "statefulset-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(set) = self.own.sets.get(key) else {
            self.own.written.forget(key);
            return Observation::Absent;
        };

        if self.is_behind(key) {
            return Observation::Behind;
        }

        if set.selector.is_none() {
            tracing::warn!(%key, "invalid selector; not reconciled until it is changed");
            return Observation::Absent;
        }

        let (pods, revisions) = (self.own.pods_of(&set), self.own.revisions_of(&set));
        let claims = self.claims_of(&set, &pods);

        Observation::Present {
            uid: set.uid.clone(),
            observed: Observed {
                set,
                pods,
                revisions,
                claims,
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
