//! The sync loop: receives pods from the API server and manifest files, admits them, and dispatches
//! them to their workers.

use std::sync::Arc;

use coracle_client::{Cached, Change, Informer, ObjectKey, Subscription, Tasks, Typed, Whole};
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;

use crate::admit::{NodeState, Refusal, admit};
use crate::housekeeping;
use crate::kubelet::Shared;
use crate::manifests::{Changes, Manifests};
use crate::mirror_pods::{MirrorPods, is_mirror};
use crate::pod::PodView;
use crate::pod_manager::{Entry, PodManager};
use crate::pod_workers::PodWorkers;
use crate::probes::ProbeResults;
use crate::references::ChangedPods;
use crate::status::{is_terminal, rejected};

/// All sources of pods, and their consumers.
pub(crate) struct SyncLoop {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: PodWorkers,
    pub(crate) mirrors: MirrorPods,
    /// The Node object.
    pub(crate) node: Informer<Whole>,
    pub(crate) tasks: Tasks,
    /// Notified when pods were added or removed.
    pub(crate) pods_changed: Arc<Notify>,
    /// The current static pods.
    pub(crate) manifests: Manifests,
    pub(crate) api_synced: bool,
    pub(crate) files_synced: bool,
}

/// The inputs of the sync loop.
pub(crate) struct Inputs {
    pub(crate) api: Subscription<Typed<Pod>>,
    pub(crate) files: Option<Changes>,
    pub(crate) probes: ProbeResults,
    /// Pods whose ConfigMaps or Secrets have changed.
    pub(crate) changed: ChangedPods,
}

impl SyncLoop {
    /// Runs forever.
    pub(crate) async fn run(mut self, inputs: Inputs) {
        let Inputs {
            mut api,
            mut files,
            mut probes,
            mut changed,
        } = inputs;

        if files.is_none() {
            self.mirrors.set_static_pods(&self.manifests);
        }

        let workers = self.workers.clone();
        let (shared, pods_changed) = (self.shared.clone(), self.pods_changed.clone());
        self.tasks
            .spawn(async move { update_cpu_shares(&shared, &pods_changed).await });

        loop {
            tokio::select! {
                change = api.next() => self.handle_change(change),
                Some(manifests) = read(files.as_mut()) => self.handle_manifests(manifests),
                Some(result) = probes.recv() => self.workers.wake(&result.uid),
                Some(uid) = changed.recv() => self.workers.refresh(&uid),
                () = workers.worker_finished() => self.start_static_pods(),
            }
        }
    }

    fn handle_change(&mut self, change: Change<Typed<Pod>>) {
        match change {
            Change::Added { object, .. } | Change::Updated { new: object, .. } => {
                if is_mirror(&object.object) {
                    self.handle_mirror(&object);
                    return;
                }
                let pod = Arc::new(object.object.0.clone());
                self.dispatch(&pod);
            }
            Change::Deleted { object, .. } if is_mirror(&object.object) => {
                self.handle_mirror(&object)
            }
            Change::Deleted { object, .. } => {
                self.workers.remove(&object.uid);
                self.notify_pods_changed();
            }
            Change::Synced => {
                self.api_synced = true;
                self.clean_up();
            }
        }
    }

    fn handle_mirror(&self, mirror: &Cached<Typed<Pod>>) {
        self.mirrors.enqueue(&mirror.key);
        if let Some(pod) = self.mirrors.static_pod(&mirror.key) {
            self.shared.status_manager.requeue(pod.uid());
        }
    }

    /// The manifest directory has changed.
    fn handle_manifests(&mut self, manifests: Manifests) {
        let before = std::mem::replace(&mut self.manifests, manifests);
        for gone in before
            .keys()
            .filter(|uid| !self.manifests.contains_key(*uid))
        {
            self.workers.remove(gone);
        }

        self.mirrors.set_static_pods(&self.manifests);
        self.start_static_pods();

        if !self.files_synced {
            self.files_synced = true;
            self.clean_up();
        }
    }

    /// Starts new static pods, unless a pod of the same name is still terminating.
    fn start_static_pods(&mut self) {
        let new = self
            .manifests
            .values()
            .filter(|pod| !self.workers.contains(pod.uid()));
        let free: Vec<Arc<Pod>> = new
            .filter(|pod| !self.workers.has_other_of_name(pod))
            .cloned()
            .collect();
        free.iter().for_each(|pod| self.dispatch(pod));
    }

    /// Adds or updates a pod; a new one must be admitted.
    fn dispatch(&self, pod: &Arc<Pod>) {
        let refusal = if self.workers.contains(pod.uid()) {
            None
        } else {
            self.refusal(pod)
        };

        self.shared.pod_manager.set(pod.clone());

        match refusal {
            Some(Refusal { reason, message }) => {
                self.shared
                    .host
                    .events
                    .warning(&pod.reference(), &reason, message.as_str());
                // Set before the next pod is admitted: a rejected pod uses no resources.
                let refused = rejected(pod, &reason, &message, self.shared.host.now());
                self.shared
                    .pod_manager
                    .set_status(pod.uid(), Arc::new(refused));
                self.workers.reject(pod, &reason, &message);
            }
            None => self.workers.update(pod),
        }

        self.notify_pods_changed();
    }

    /// Why a new pod is not admitted. A pod that has started was admitted before, whatever has
    /// changed since.
    fn refusal(&self, pod: &Pod) -> Option<Refusal> {
        let began = pod.pod_status().start_time.is_some();
        if began || pod.is_being_deleted() || pod.has_terminal_phase() {
            return None;
        }

        let node = self
            .node
            .get(&ObjectKey::cluster(&self.shared.host.node_name))?;
        let pods = active(&self.shared.pod_manager);

        admit(
            pod,
            &NodeState {
                node: &node.object,
                pods: &pods,
                sysctls: &self.shared.sysctls,
                reserved_ports: &self.shared.reserved_ports,
            },
        )
        .err()
    }

    /// Updates the CPU shares of the QoS classes.
    fn notify_pods_changed(&self) {
        self.pods_changed.notify_one();
    }

    /// Removes orphans once all sources have synced.
    fn clean_up(&self) {
        if !(self.api_synced && self.files_synced) {
            return;
        }
        let shared = self.shared.clone();
        self.tasks
            .spawn(async move { housekeeping::clean_up(&shared).await });
    }
}

/// Pods that have not terminated.
fn active(pod_manager: &PodManager) -> Vec<Arc<Pod>> {
    let finished = |entry: &Entry| {
        let reported = entry
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        entry.pod.has_terminal_phase() || is_terminal(reported)
    };

    pod_manager
        .list()
        .into_iter()
        .filter(|entry| !finished(entry))
        .map(|entry| entry.pod)
        .collect()
}

/// Updates the CPU shares of the QoS classes, once for all changes since the last update.
async fn update_cpu_shares(shared: &Shared, pods_changed: &Notify) {
    loop {
        pods_changed.notified().await;
        if let Err(error) = shared
            .cgroups
            .update_cpu_shares(&active(&shared.pod_manager))
            .await
        {
            tracing::warn!(%error, "cannot update CPU shares of QoS cgroups");
        }
    }
}

async fn read(files: Option<&mut Changes>) -> Option<Manifests> {
    match files {
        Some(files) => files.recv().await,
        None => std::future::pending().await,
    }
}
