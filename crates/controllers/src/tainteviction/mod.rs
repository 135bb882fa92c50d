//! The taint eviction controller: deletes pods from nodes whose taints they do not tolerate, or no
//! longer.
//!
//! Keys are pods. A change of a node's taints wakes all of its pods; `plan` decides whether one
//! stays, and until when.

pub mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::taint::effect::NO_EXECUTE;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Text};
use coracle_base::sync::Mutex;
use coracle_client::{
    Access, Cached, Change, DeleteOptions, Error, Informer, ObjectKey, Patch, Recorder, Resource,
    WorkQueue, World,
};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::{BY_NODE, Node, Pod};
use plan::{Observed, Plan, Scheduled};

/// The service account.
pub(crate) const ACCOUNT: &str = "node-controller";

/// The number of workers.
const WORKERS: usize = 8;

/// The controller.
pub struct TaintEviction {
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    access: Access,
    recorder: Recorder,
    world: World,
    /// Scheduled evictions, by key and UID.
    scheduled: Mutex<BTreeMap<(ObjectKey, Text), Scheduled>>,
}

/// Why a pod could not be evicted.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot update pod conditions")]
    Condition(#[source] Error),
    #[error("cannot delete pod")]
    Delete(#[source] Error),
}

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("noexec_taint_pod");
    let mut feeds = Feeds::new();
    let controller = TaintEviction::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, WORKERS)
        .await;
}

/// The `NoExecute` taints of a node.
fn no_execute_taints(node: &Node) -> impl Iterator<Item = &Value> {
    let drives = |taint: &&Value| taint.get("effect").and_then(Value::as_str) == Some(NO_EXECUTE);
    node.taints.iter().filter(drives)
}

impl TaintEviction {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> TaintEviction {
        let core = |plural| Resource::builtin("", "v1", plural);
        let nodes: Informer<Node> = context.informers.of(&core("nodes"));
        let pods: Informer<Pod> = context.informers.of(&core("pods"));
        pods.ensure_index(BY_NODE, Pod::by_node);

        let (concerned, on_node) = (queue.clone(), pods.clone());
        feeds.follow(&nodes, move |change| {
            let same = match change {
                Change::Updated { old, new } => no_execute_taints(old).eq(no_execute_taints(new)),
                // If the node was deleted, the pod is left to the pod garbage collector.
                Change::Added { object, .. } | Change::Deleted { object, .. } => {
                    no_execute_taints(object).next().is_none()
                }
                Change::Synced => true,
            };

            if let (false, Some(node)) = (same, change.object()) {
                let pods = on_node
                    .index_keys(BY_NODE, &node.key.name)
                    .unwrap_or_default();
                pods.into_iter().for_each(|pod| concerned.add(pod));
            }
        });

        let (concerned, tainted) = (queue.clone(), nodes.clone());
        feeds.follow(&pods, move |change| {
            let same = matches!(&change, Change::Updated { old, new }
                if old.tolerations == new.tolerations && old.node == new.node);
            let Some(pod) = change.object().filter(|pod| !same && !pod.node.is_empty()) else {
                return;
            };

            let node = tainted.get(&ObjectKey::cluster(&pod.node));
            if node.is_some_and(|node| no_execute_taints(&node).next().is_some()) {
                concerned.add(pod.key.clone());
            }
        });

        TaintEviction {
            access: context.client(ACCOUNT).resource(&core("pods")),
            recorder: context
                .recorder
                .clone()
                .component("taint-eviction-controller"),
            world: context.world,
            scheduled: Mutex::default(),
            nodes,
            pods,
        }
    }

    fn remember(&self, pod: &Cached<Pod>, scheduled: Option<Scheduled>) {
        let mut all = self.scheduled.lock();
        let name = (pod.key.clone(), pod.uid.clone());
        match scheduled {
            Some(scheduled) => all.insert(name, scheduled),
            None => all.remove(&name),
        };
    }

    async fn evict(&self, key: &ObjectKey, pod: &Arc<Cached<Pod>>) -> Result<(), ActError> {
        let message = format!("Marking for deletion Pod {key}");
        self.recorder
            .normal(&Pod::reference(pod), "TaintManagerEviction", message);
        let pods = self.access.clone().namespace(&key.namespace);

        let why = Patch::Strategic(disruption(pod, self.world.now()));
        match pods
            .clone()
            .subresource("status")
            .patch(&key.name, &why)
            .await
        {
            Ok(_) => {}
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            Err(error) => return Err(ActError::Condition(error)),
        }

        match pods.delete(&key.name, &DeleteOptions::only(&pod.uid)).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => {
                Err(ActError::Delete(error))
            }
            _ => Ok(()),
        }
    }
}

/// The condition with the reason of the eviction.
fn disruption(pod: &Cached<Pod>, now: Timestamp) -> Value {
    let why = (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    );
    let mut patch = Map::new();
    patch.object_mut("metadata").insert("uid", pod.uid.as_str());
    patch
        .object_mut("status")
        .insert("conditions", vec![pod.disruption(Some(why), now)]);
    Value::Object(patch)
}

#[async_trait]
impl Controller for TaintEviction {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "taint-eviction-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let mut scheduled = self.scheduled.lock();

        let Some(pod) = self.pods.get(key) else {
            scheduled.retain(|(pod, _), _| pod != key);
            return Observation::Absent;
        };

        let node = self.nodes.get(&ObjectKey::cluster(&pod.node));
        let observed = Observed {
            taints: node
                .iter()
                .flat_map(|node| no_execute_taints(node))
                .cloned()
                .collect(),
            scheduled: scheduled.get(&(key.clone(), pod.uid.clone())).copied(),
            pod,
        };

        Observation::Present {
            uid: observed.pod.uid.clone(),
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
        let pod = &observed.pod;
        match plan {
            Plan::Stay => Ok(Requeue::OnEvent),
            Plan::Cancel => {
                self.remember(pod, None);
                if !pod.is_being_deleted {
                    let message = format!("Cancelling deletion of Pod {key}");
                    self.recorder
                        .normal(&Pod::reference(pod), "TaintManagerEviction", message);
                }
                Ok(Requeue::OnEvent)
            }
            Plan::Leave(scheduled) => {
                self.remember(pod, Some(scheduled));
                let after = scheduled
                    .at
                    .since(self.world.now())
                    .to_std()
                    .unwrap_or_default();
                Ok(Requeue::After(after))
            }
            Plan::Evict => {
                self.evict(key, pod).await?;
                self.remember(pod, None);
                Ok(Requeue::OnEvent)
            }
        }
    }
}
