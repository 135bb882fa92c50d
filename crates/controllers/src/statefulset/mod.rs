//! The StatefulSet controller: pods with numbers, names and claims of their own.
//!
//! `hear` turns changes of StatefulSets, pods, revisions and claims into keys; `plan` decides, with the help of
//! `replace` (what is replaced next), `identity` (what is a pod's own) and `status`; `act` does it.

mod act;
mod hear;
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
use coracle_client::{Access, Cached, Informer, Metadata, ObjectKey, Recorder, Resource, WorkQueue};

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::frame::{Context, Controller, Feeds, Observation, Requeue, Shell};
use crate::history::{Revision, Revisions};
use crate::own_writes::OwnWrites;
use crate::pods::{PodControl, Unseen};
use crate::views::{BY_CONTROLLER, Pod, StatefulSet, orphans_of};
use identity::claim_name;

/// The label of pods that says which revision they are of, by its name.
pub const POD_REVISION: &str = "controller-revision-hash";
/// The label of revisions that tells them apart.
const HASH: &str = "controller.kubernetes.io/hash";
/// The controller's account, and the component in its events.
const ACCOUNT: &str = "statefulset-controller";
/// What own writes are noted under.
const SETS: &str = "statefulsets";
const CLAIMS: &str = "persistentvolumeclaims";

/// The controller.
pub struct StatefulSets {
    sets: Informer<StatefulSet>,
    pods: Informer<Pod>,
    revisions: Informer<Revision>,
    claims: Informer<Metadata>,
    set_access: Access,
    claim_access: Access,
    control: PodControl,
    history: Revisions,
    written: Arc<OwnWrites>,
    recorder: Recorder,
}

/// Begins the controller, with so many workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("statefulset");
    let mut feeds = Feeds::new(context.tasks.clone());
    let controller = StatefulSets::new(context, &queue, &mut feeds);
    Shell::new(controller, queue, context).run(feeds, workers).await;
}

impl StatefulSets {
    /// The controller, whose feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> StatefulSets {
        let sets_of = Resource::builtin("apps", "v1", SETS);
        let pods_of = Resource::builtin("", "v1", "pods");
        let claims_of = Resource::builtin("", "v1", CLAIMS);
        let revisions_of = Resource::builtin("apps", "v1", "controllerrevisions");
        let sets: Informer<StatefulSet> = context.informers.of(&sets_of);
        let pods: Informer<Pod> = context.informers.of(&pods_of);
        let claims: Informer<Metadata> = context.informers.of(&claims_of);
        let revisions: Informer<Revision> = context.informers.of(&revisions_of);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);
        revisions.ensure_index(BY_CONTROLLER, Revision::by_controller);
        // Names say what is there: nothing that was set in motion can be done twice, and nothing is expected.
        let nothing = Arc::new(Unseen::default());
        let written = Arc::new(OwnWrites::default());
        hear::follow(feeds, &sets, &pods, &revisions, &claims, &nothing, queue);
        let client = context.client(ACCOUNT);
        let set_access = client.resource(&sets_of);
        let recorder = context.recorder.clone().component(ACCOUNT);
        let pod_access = client.resource(&pods_of);
        StatefulSets {
            sets,
            pods,
            revisions,
            claims,
            control: PodControl::new(
                set_access.clone(),
                pod_access,
                nothing,
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
            claim_access: client.resource(&claims_of),
            written,
            recorder,
        }
    }

    fn is_behind(&self, key: &ObjectKey) -> bool {
        let held = [
            (SETS, self.sets.version()),
            ("pods", self.pods.version()),
            ("controllerrevisions", self.revisions.version()),
            (CLAIMS, self.claims.version()),
        ];
        self.written.is_behind(key, &held)
    }

    /// The claims that there are of pods that should be there, or are.
    fn claims_of(
        &self,
        set: &Cached<StatefulSet>,
        pods: &[Arc<Cached<Pod>>],
    ) -> BTreeMap<coracle_api::Text, Arc<Cached<Metadata>>> {
        let there = pods.iter().filter_map(|pod| set.ordinal_of(&pod.key.name));
        let wanted = set.start()..set.start() + set.replicas();
        let ordinals: std::collections::BTreeSet<usize> = wanted.chain(there).collect();
        let names = set.claim_templates().iter().flat_map(|template| {
            ordinals.iter().map(|ordinal| claim_name(set, template.meta().name(), *ordinal))
        });
        let keys = names.map(|name| ObjectKey::new(&set.key.namespace, &name));
        keys.filter_map(|key| self.claims.get(&key)).map(|claim| (claim.key.name.clone(), claim)).collect()
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
        let Some(set) = self.sets.get(key) else {
            self.written.forget(key);
            return Observation::Gone;
        };
        if self.is_behind(key) {
            return Observation::Behind;
        }
        if set.selector.is_none() {
            tracing::warn!(%key, "the selector makes no sense: nothing is done before it is changed");
            return Observation::Gone;
        }
        let own = [set.uid.to_string(), orphans_of(&key.namespace)];
        let pods: Vec<_> = own
            .iter()
            .flat_map(|value| {
                self.pods.by_index(BY_CONTROLLER, value).expect("the index was made with the controller")
            })
            .collect();
        let revisions = own.iter().flat_map(|value| {
            self.revisions.by_index(BY_CONTROLLER, value).expect("the index was made with the controller")
        });
        let revisions = revisions.collect();
        let claims = self.claims_of(&set, &pods);
        Observation::Seen { uid: set.uid.clone(), observed: Observed { set, pods, revisions, claims } }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn act(&self, key: &ObjectKey, observed: Observed, plan: Plan) -> Result<Requeue, ActError> {
        self.carry_out(key, &observed, plan).await
    }
}
