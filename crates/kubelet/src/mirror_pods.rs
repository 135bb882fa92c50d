//! Mirror pods: API objects that show the static pods of this node. A static pod cannot be
//! controlled through its mirror: a deleted mirror is recreated, a differing one is replaced, and
//! it is deleted with its static pod.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::typed;
use coracle_base::sync::Mutex;
use coracle_client::queue::ExponentialLimiter;
use coracle_client::{
    Access, Client, DeleteOptions, Error, Informer, ObjectKey, Resource, Tasks, Typed, Whole,
    WorkQueue,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::manifests::Manifests;
use crate::pod::PodView;

/// Annotation of a mirror pod: the hash of its manifest.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";
const HASH: &str = "kubernetes.io/config.hash";

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The mirror pods of one node. Clones share state.
#[derive(Clone)]
pub(crate) struct MirrorPods {
    shared: Arc<Shared>,
}

struct Shared {
    access: Access,
    pods: Informer<Typed<Pod>>,
    node: Informer<Whole>,
    node_name: String,
    queue: WorkQueue<ObjectKey>,
    /// None: the manifests have not been read yet.
    statics: Mutex<Option<BTreeMap<ObjectKey, Arc<Pod>>>>,
}

impl MirrorPods {
    pub(crate) fn new(
        client: &Client,
        node_name: &str,
        pods: Informer<Typed<Pod>>,
        node: Informer<Whole>,
        tasks: &Tasks,
    ) -> MirrorPods {
        let limiter = ExponentialLimiter::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mirrors = MirrorPods {
            shared: Arc::new(Shared {
                access: client.resource(&Resource::of::<Pod>()),
                pods,
                node,
                node_name: node_name.to_owned(),
                queue: WorkQueue::with_limiter("mirror-pods", Box::new(limiter)),
                statics: Mutex::default(),
            }),
        };

        let runner = mirrors.clone();
        tasks.spawn(async move { runner.run().await });

        mirrors
    }

    /// Sets the current static pods.
    pub(crate) fn set_static_pods(&self, manifests: &Manifests) {
        let now: BTreeMap<ObjectKey, Arc<Pod>> = manifests
            .values()
            .map(|pod| (key_of(pod), pod.clone()))
            .collect();

        let before = self
            .shared
            .statics
            .lock()
            .replace(now.clone())
            .unwrap_or_default();
        let existing = self.shared.pods.list();
        let mirrors = existing
            .iter()
            .filter(|pod| is_mirror(&pod.object))
            .map(|pod| pod.key.clone());

        before
            .into_keys()
            .chain(now.into_keys())
            .chain(mirrors)
            .for_each(|key| self.shared.queue.add(key));
    }

    /// Queues a mirror pod that has changed.
    pub(crate) fn enqueue(&self, key: &ObjectKey) {
        self.shared.queue.add(key.clone());
    }

    /// The static pod of this name.
    pub(crate) fn static_pod(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
        self.shared.statics.lock().as_ref()?.get(key).cloned()
    }

    async fn run(&self) {
        while let Some(job) = self.shared.queue.take().await {
            let key: ObjectKey = (*job).clone();
            match self.reconcile(&key).await {
                Ok(()) => self.shared.queue.forget(&key),
                Err(error) => {
                    tracing::info!(pod = %key, %error, "cannot sync mirror pod; retrying");
                    self.shared.queue.add_rate_limited(key);
                }
            }
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let wanted = match self.shared.statics.lock().as_ref() {
            None => return Ok(()),
            Some(statics) => statics.get(key).cloned(),
        };

        let existing = self.shared.pods.get(key);
        let mirror = existing.as_ref().filter(|pod| is_mirror(&pod.object));

        let access = self.shared.access.clone().namespace(&key.namespace);
        match (wanted, mirror) {
            (Some(wanted), None) if existing.is_none() => self.create(&access, &wanted).await,
            (Some(wanted), Some(mirror)) if reflects(&mirror.object, &wanted) => Ok(()),
            (_, Some(mirror)) => {
                let options = DeleteOptions {
                    grace_period_seconds: Some(0),
                    ..DeleteOptions::only(&mirror.uid)
                };

                match access.delete(&key.name, &options).await {
                    Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
                    // It is recreated when its deletion is observed.
                    _ => Ok(()),
                }
            }
            (_, None) => Ok(()),
        }
    }

    async fn create(&self, access: &Access, pod: &Pod) -> Result<(), Error> {
        // Without a Node object to own them, mirror pods would never be removed.
        let Some(node) = self
            .shared
            .node
            .get(&ObjectKey::cluster(&self.shared.node_name))
        else {
            return Ok(());
        };
        let mirror = mirror_of(pod, &self.shared.node_name, &node.uid);

        let tree = typed::to_tree(&mirror).map_err(|error| Error::Request(error.to_string()))?;
        match access.create(&tree).await {
            Err(error) if !error.is_already_exists() => Err(error),
            _ => Ok(()),
        }
    }
}

/// Builds the mirror pod of a static pod.
fn mirror_of(pod: &Pod, node: &str, node_uid: &str) -> Pod {
    let mut mirror = pod.clone();
    let hash = pod.annotation(HASH).unwrap_or_default().to_owned();
    mirror.metadata.uid = None;
    mirror
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(MIRROR.to_owned(), hash);

    mirror.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.to_owned(),
        uid: node_uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }]);

    mirror.status = None;

    mirror
}

pub(crate) fn is_mirror(pod: &Pod) -> bool {
    pod.annotation(MIRROR).is_some()
}

/// Whether a mirror pod is that of this pod and is not being deleted.
pub(crate) fn reflects(mirror: &Pod, pod: &Pod) -> bool {
    !mirror.is_being_deleted() && mirror.annotation(MIRROR) == pod.annotation(HASH)
}

/// Whether a pod comes from a manifest file.
pub(crate) fn is_static(pod: &Pod) -> bool {
    !is_mirror(pod)
        && pod
            .annotation("kubernetes.io/config.source")
            .is_some_and(|source| source != "api")
}

fn key_of(pod: &Pod) -> ObjectKey {
    ObjectKey::new(pod.namespace(), PodView::name(pod))
}
