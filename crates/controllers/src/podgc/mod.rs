//! The pod garbage collector: deletes pods without a node, and ended pods beyond a threshold.
//!
//! A pod is reconciled when its node is deleted, or when it is being deleted and no kubelet can
//! confirm that. Ended pods are counted some time after one has ended.

pub mod plan;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Text, Value};
use coracle_base::sync::Mutex;
use coracle_client::{
    Access, Cached, Change, DeleteOptions, Error, Informer, ObjectKey, Patch, Resource, WorkQueue,
    World,
};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::{BY_NODE, Node, Phase, Pod};
use plan::{Plan, PodNode};

/// The service account.
pub(crate) const ACCOUNT: &str = "pod-garbage-collector";

/// Ended pods are counted at most this often.
const COUNT_EVERY: Duration = Duration::from_secs(20);
/// The number of workers.
const WORKERS: usize = 2;

/// What the controller works on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// One pod.
    Pod(ObjectKey),
    /// All ended pods.
    Ended,
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Pod(pod) => pod.fmt(out),
            Key::Ended => out.write_str("ended pods"),
        }
    }
}

/// What was observed.
#[derive(Debug)]
pub enum Observed {
    /// A pod and its node.
    Pod(Arc<Cached<Pod>>, PodNode),
    /// All pods, and the threshold.
    All(Vec<Arc<Cached<Pod>>>, usize),
}

/// What to do.
#[derive(Debug)]
pub enum Work {
    /// For one pod.
    Pod(Plan),
    /// Delete these.
    Remove(Vec<Arc<Cached<Pod>>>),
}

/// The controller.
pub struct PodGarbage {
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    node_access: Access,
    pod_access: Access,
    threshold: usize,
    world: World,
    /// Since when nodes have been missing that pods name.
    missing: Mutex<BTreeMap<Text, Timestamp>>,
}

/// Why a pod could not be deleted.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot read node")]
    Node(#[source] Error),
    #[error("cannot mark pod as failed")]
    Mark(#[source] Error),
    #[error("cannot delete pod")]
    Delete(#[source] Error),
}

/// Runs the controller; `threshold` ended pods are kept, all if it is 0. Never returns.
pub async fn run(context: &Context, threshold: usize) {
    let queue = WorkQueue::new("pod_garbage");
    let mut feeds = Feeds::new();
    let controller = PodGarbage::new(context, threshold, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, WORKERS)
        .await;
}

impl PodGarbage {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        threshold: usize,
        queue: &WorkQueue<Key>,
        feeds: &mut Feeds,
    ) -> PodGarbage {
        let core = |plural| Resource::builtin("", "v1", plural);
        let nodes: Informer<Node> = context.informers.of(&core("nodes"));
        let pods: Informer<Pod> = context.informers.of(&core("pods"));
        pods.ensure_index(BY_NODE, Pod::by_node);

        let (concerned, on_node) = (queue.clone(), pods.clone());
        feeds.follow(&nodes, move |change| {
            let same = matches!(&change, Change::Updated { old, new }
                if old.taints == new.taints && old.is_ready() == new.is_ready());
            let Some(node) = change.object().filter(|_| !same) else {
                return;
            };

            let pods = on_node
                .index_keys(BY_NODE, &node.key.name)
                .unwrap_or_default();
            pods.into_iter()
                .for_each(|pod| concerned.add(Key::Pod(pod)));
        });

        let (concerned, known) = (queue.clone(), nodes.clone());
        feeds.follow(&pods, move |change| {
            let Some(pod) = change.object() else { return };
            if matches!(pod.phase, Phase::Succeeded | Phase::Failed) {
                concerned.add_after(Key::Ended, COUNT_EVERY);
            }

            let placed =
                !pod.node.is_empty() && known.get(&ObjectKey::cluster(&pod.node)).is_some();
            if pod.is_being_deleted || (!pod.node.is_empty() && !placed) {
                concerned.add(Key::Pod(pod.key.clone()));
            }
        });

        let client = context.client(ACCOUNT);
        PodGarbage {
            node_access: client.resource(&core("nodes")),
            pod_access: client.resource(&core("pods")),
            world: context.world,
            missing: Mutex::default(),
            threshold,
            nodes,
            pods,
        }
    }

    fn node(&self, pod: &Pod) -> PodNode {
        if pod.node.is_empty() {
            return PodNode::Unscheduled;
        }

        let mut missing = self.missing.lock();
        match self.nodes.get(&ObjectKey::cluster(&pod.node)) {
            Some(node) => {
                missing.remove(&pod.node);
                PodNode::On(node)
            }
            None => PodNode::Missing(
                *missing
                    .entry(pod.node.clone())
                    .or_insert_with(|| self.world.now()),
            ),
        }
    }

    /// Marks the pod as failed, unless it has ended, and deletes it with grace period 0.
    async fn remove(&self, pod: &Cached<Pod>, why: Option<(&str, &str)>) -> Result<(), ActError> {
        let pods = self.pod_access.clone().namespace(&pod.key.namespace);
        if !matches!(pod.phase, Phase::Succeeded | Phase::Failed) {
            let patch = Patch::Strategic(failed(pod, why, self.world.now()));
            match pods
                .clone()
                .subresource("status")
                .patch(&pod.key.name, &patch)
                .await
            {
                Ok(_) => {}
                Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
                Err(error) => return Err(ActError::Mark(error)),
            }
        }

        let at_once = DeleteOptions {
            grace_period_seconds: Some(0),
            ..DeleteOptions::only(&pod.uid)
        };

        match pods.delete(&pod.key.name, &at_once).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => {
                Err(ActError::Delete(error))
            }
            _ => Ok(()),
        }
    }

    /// Deletes a pod if its node does not exist on the server.
    async fn remove_orphan(&self, pod: &Cached<Pod>) -> Result<(), ActError> {
        match self
            .node_access
            .find(&pod.node)
            .await
            .map_err(ActError::Node)?
        {
            Some(_) => Ok(()),
            None => {
                self.remove(
                    pod,
                    Some(("DeletionByPodGC", "PodGC: node no longer exists")),
                )
                .await
            }
        }
    }
}

fn failed(pod: &Cached<Pod>, why: Option<(&str, &str)>, now: Timestamp) -> Value {
    let mut patch = Map::new();
    patch.object_mut("metadata").insert("uid", pod.uid.as_str());
    let status = patch.object_mut("status");
    status.insert("phase", "Failed");
    if why.is_some() {
        status.insert("conditions", vec![pod.disruption(why, now)]);
    }
    Value::Object(patch)
}

#[async_trait]
impl Controller for PodGarbage {
    type Key = Key;
    type Observed = Observed;
    type Plan = Work;
    type Error = ActError;

    const NAME: &'static str = "pod-garbage-collector-controller";

    fn observe(&self, key: &Key) -> Observation<Observed> {
        let Key::Pod(key) = key else {
            let observed = Observed::All(self.pods.list(), self.threshold);
            return Observation::Present {
                uid: Text::default(),
                observed,
            };
        };

        let Some(pod) = self.pods.get(key) else {
            return Observation::Absent;
        };
        let node = self.node(&pod);
        Observation::Present {
            uid: pod.uid.clone(),
            observed: Observed::Pod(pod, node),
        }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Work {
        match observed {
            Observed::Pod(pod, node) => Work::Pod(plan::plan(pod, node, now)),
            Observed::All(pods, threshold) => Work::Remove(plan::surplus(pods, *threshold)),
        }
    }

    async fn act(&self, _: &Key, observed: Observed, work: Work) -> Result<Requeue, ActError> {
        match (observed, work) {
            (Observed::Pod(..), Work::Pod(Plan::Leave)) => {}
            (Observed::Pod(..), Work::Pod(Plan::LookAfter(time))) => {
                return Ok(Requeue::After(time.to_std().unwrap_or_default()));
            }
            (Observed::Pod(pod, _), Work::Pod(Plan::Orphan)) => self.remove_orphan(&pod).await?,
            (Observed::Pod(pod, _), Work::Pod(Plan::Remove)) => self.remove(&pod, None).await?,
            (_, Work::Remove(pods)) => {
                for pod in pods {
                    self.remove(&pod, None).await?;
                }
            }
            (Observed::All(..), Work::Pod(_)) => {}
        }

        Ok(Requeue::OnEvent)
    }
}
