//! The sync loop: receives pods from the API server and manifest files, admits them, and dispatches
//! them to their workers.

use std::sync::Arc;

use coracle_client::{Cached, Change, Informer, ObjectKey, Subscription, Tasks, Typed, Whole};
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;

use crate::admit::{Place, Refusal, admit};
use crate::kubelet::Shared;
use crate::manifests::{Changes, Manifests};
use crate::mirrors::{Mirrors, is_mirror};
use crate::orphans;
use crate::parts::ProbeResults;
use crate::pod::PodView;
use crate::references::ChangedPods;
use crate::roster::{Entry, Roster};
use crate::status::{is_terminal, rejected};
use crate::worker::Workers;

/// All sources of pods, and their consumers.
pub(crate) struct Sources {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Workers,
    pub(crate) mirrors: Mirrors,
    /// The Node object.
    pub(crate) node: Informer<Whole>,
    pub(crate) tasks: Tasks,
    /// Notified when pods were added or removed.
    pub(crate) others_are_here: Arc<Notify>,
    /// The current static pods.
    pub(crate) manifests: Manifests,
    pub(crate) api_is_known: bool,
    pub(crate) files_are_known: bool,
}

/// The inputs of the sync loop.
pub(crate) struct News {
    pub(crate) api: Subscription<Typed<Pod>>,
    pub(crate) files: Option<Changes>,
    pub(crate) probes: ProbeResults,
    /// Pods whose ConfigMaps or Secrets have changed.
    pub(crate) changed: ChangedPods,
}

impl Sources {
    /// Runs forever.
    pub(crate) async fn run(mut self, news: News) {
        let News {
            mut api,
            mut files,
            mut probes,
            mut changed,
        } = news;

        if files.is_none() {
            self.mirrors.want(&self.manifests);
        }

        let workers = self.workers.clone();
        let (shared, others_are_here) = (self.shared.clone(), self.others_are_here.clone());
        self.tasks
            .spawn(async move { keep_sharing(&shared, &others_are_here).await });

        loop {
            tokio::select! {
                change = api.next() => self.heard(change),
                Some(manifests) = read(files.as_mut()) => self.read(manifests),
                Some(result) = probes.recv() => self.workers.poke(&result.uid),
                Some(uid) = changed.recv() => self.workers.refresh(&uid),
                () = workers.one_left() => self.start_statics(),
            }
        }
    }

    fn heard(&mut self, change: Change<Typed<Pod>>) {
        match change {
            Change::Added { object, .. } | Change::Updated { new: object, .. } => {
                if is_mirror(&object.object) {
                    self.heard_of_mirror(&object);
                    return;
                }
                let pod = Arc::new(object.object.0.clone());
                self.take(&pod);
            }
            Change::Deleted { object, .. } if is_mirror(&object.object) => {
                self.heard_of_mirror(&object)
            }
            Change::Deleted { object, .. } => {
                self.workers.remove(&object.uid);
                self.share();
            }
            Change::Synced => {
                self.api_is_known = true;
                self.clean_up();
            }
        }
    }

    fn heard_of_mirror(&self, mirror: &Cached<Typed<Pod>>) {
        self.mirrors.heard(&mirror.key);
        if let Some(pod) = self.mirrors.static_pod(&mirror.key) {
            self.shared.publisher.again(pod.uid());
        }
    }

    /// The manifest directory has changed.
    fn read(&mut self, manifests: Manifests) {
        let before = std::mem::replace(&mut self.manifests, manifests);
        for gone in before
            .keys()
            .filter(|uid| !self.manifests.contains_key(*uid))
        {
            self.workers.remove(gone);
        }

        self.mirrors.want(&self.manifests);
        self.start_statics();

        if !self.files_are_known {
            self.files_are_known = true;
            self.clean_up();
        }
    }

    /// Starts new static pods, unless a pod of the same name is still terminating.
    fn start_statics(&mut self) {
        let new = self
            .manifests
            .values()
            .filter(|pod| !self.workers.knows(pod.uid()));
        let free: Vec<Arc<Pod>> = new
            .filter(|pod| !self.workers.has_namesake(pod))
            .cloned()
            .collect();
        free.iter().for_each(|pod| self.take(pod));
    }

    /// Adds or updates a pod; a new one must be admitted.
    fn take(&self, pod: &Arc<Pod>) {
        let refusal = if self.workers.knows(pod.uid()) {
            None
        } else {
            self.refusal(pod)
        };

        self.shared.roster.want(pod.clone());

        match refusal {
            Some(Refusal { reason, message }) => {
                self.shared
                    .host
                    .events
                    .warning(&pod.reference(), &reason, message.as_str());
                // Set before the next pod is admitted: a rejected pod uses no resources.
                let refused = rejected(pod, &reason, &message, self.shared.host.now());
                self.shared.roster.report(pod.uid(), Arc::new(refused));
                self.workers.reject(pod, &reason, &message);
            }
            None => self.workers.update(pod),
        }

        self.share();
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
        let pods = active(&self.shared.roster);

        admit(
            pod,
            &Place {
                node: &node.object,
                pods: &pods,
                sysctls: &self.shared.sysctls,
            },
        )
        .err()
    }

    /// Updates the CPU shares of the QoS classes.
    fn share(&self) {
        self.others_are_here.notify_one();
    }

    /// Removes orphans once all sources have synced.
    fn clean_up(&self) {
        if !(self.api_is_known && self.files_are_known) {
            return;
        }
        let shared = self.shared.clone();
        self.tasks
            .spawn(async move { orphans::clean_up(&shared).await });
    }
}

/// Pods that have not terminated.
fn active(roster: &Roster) -> Vec<Arc<Pod>> {
    let over = |entry: &Entry| {
        let told = entry
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        entry.pod.has_terminal_phase() || is_terminal(told)
    };

    roster
        .list()
        .into_iter()
        .filter(|entry| !over(entry))
        .map(|entry| entry.pod)
        .collect()
}

/// Updates the CPU shares of the QoS classes, once for all changes since the last update.
async fn keep_sharing(shared: &Shared, others_are_here: &Notify) {
    loop {
        others_are_here.notified().await;
        if let Err(error) = shared.groups.share(&active(&shared.roster)).await {
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
