//! Where pods come from: the API, and files. Each is taken or refused, and handed to its worker.

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

/// All sources of pods, and what they lead to.
pub(crate) struct Sources {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Workers,
    pub(crate) mirrors: Mirrors,
    /// The node's own object.
    pub(crate) node: Informer<Whole>,
    pub(crate) tasks: Tasks,
    /// The pods of this node are others than before.
    pub(crate) others_are_here: Arc<Notify>,
    /// The static pods that are to be here.
    pub(crate) manifests: Manifests,
    pub(crate) api_is_known: bool,
    pub(crate) files_are_known: bool,
}

/// What comes from outside.
pub(crate) struct News {
    pub(crate) api: Subscription<Typed<Pod>>,
    pub(crate) files: Option<Changes>,
    pub(crate) probes: ProbeResults,
    /// Pods that name something which has changed.
    pub(crate) changed: ChangedPods,
}

impl Sources {
    /// Hands on what comes, for ever.
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

    /// The folder of manifests has another state.
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

    /// Static pods that are not here yet begin, unless one of their name is still ending.
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

    /// A pod is there, or has changed: one that is new may not be taken.
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
                // Known before the next pod is asked about: one that is refused takes no room.
                let refused = rejected(pod, &reason, &message, self.shared.host.now());
                self.shared.roster.report(pod.uid(), Arc::new(refused));
                self.workers.reject(pod, &reason, &message);
            }
            None => self.workers.update(pod),
        }

        self.share();
    }

    /// Whether a pod that is new here is not taken. One that has begun was taken before, whatever
    /// has changed since.
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

    /// Gives the classes of pods their shares of the processors, now that others are here.
    fn share(&self) {
        self.others_are_here.notify_one();
    }

    /// When all sources have told what they know, what belongs to none of it goes.
    fn clean_up(&self) {
        if !(self.api_is_known && self.files_are_known) {
            return;
        }
        let shared = self.shared.clone();
        self.tasks
            .spawn(async move { orphans::clean_up(&shared).await });
    }
}

/// Pods that are not over.
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

/// Gives the classes of pods their shares of the processors: once for all that have come or gone
/// meanwhile.
async fn keep_sharing(shared: &Shared, others_are_here: &Notify) {
    loop {
        others_are_here.notified().await;
        if let Err(error) = shared.groups.share(&active(&shared.roster)).await {
            tracing::warn!(%error, "the shares of pods are not set");
        }
    }
}

async fn read(files: Option<&mut Changes>) -> Option<Manifests> {
    match files {
        Some(files) => files.recv().await,
        None => std::future::pending().await,
    }
}
