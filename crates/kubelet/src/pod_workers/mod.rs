//! Pod workers: one per pod. Only the worker acts on its pod.
//!
//! A worker is in one of four stages and never goes back. *Syncing* (`sync.rs`): reconciles the pod
//! after each change and periodically. *Terminating* (`terminate.rs`): the pod is deleted, finished
//! or failed; its containers are stopped within the grace period. *Terminated*: nothing runs;
//! volumes and cgroup are removed. *Finished*: only the object, logs and exited containers remain,
//! until the object is deleted.
//!
//! A worker is controlled through its [`Mailbox`]: the newest spec replaces older ones, and a
//! termination cannot be revoked; its grace period can only be shortened.

mod files;
mod kill;
mod metrics;
mod sandbox;
mod start;
mod sync;
mod terminate;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use coracle_client::Tasks;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub(crate) use metrics::PodMetrics;

use crate::actions::ProbeVerdicts;
use crate::kubelet::Shared;
use crate::observe::observe_with_messages;
use crate::observed::Observed;
use crate::pod::PodView;
use crate::status::{self, StatusInputs, Waiting};
use crate::status_manager::Report;
use metrics::Startup;

/// All pod workers of a node. Clones share state.
#[derive(Clone)]
pub(crate) struct PodWorkers {
    shared: Arc<Shared>,
    mailboxes: Arc<Mutex<BTreeMap<Text, Arc<Mailbox>>>>,
    /// Notified when a worker has finished.
    finished: Arc<Notify>,
    tasks: Tasks,
}

/// The inputs of a worker.
struct Mailbox {
    request: Mutex<WorkerRequest>,
    changed: Notify,
    /// The pod must be synced even if nothing seems to have changed.
    must_sync: AtomicBool,
    /// The grace period of the termination in seconds; none: the pod is not terminating.
    termination: watch::Sender<Option<i64>>,
}

#[derive(Clone)]
struct WorkerRequest {
    pod: Arc<Pod>,
    /// The object was deleted.
    is_deleted: bool,
    /// It was not admitted: reason and message.
    rejected: Option<(String, String)>,
}

impl PodWorkers {
    pub(crate) fn new(shared: Arc<Shared>, tasks: Tasks) -> PodWorkers {
        PodWorkers {
            shared,
            mailboxes: Arc::default(),
            finished: Arc::default(),
            tasks,
        }
    }

    /// Adds or updates a pod.
    pub(crate) fn update(&self, pod: &Arc<Pod>) {
        self.send(pod, None);
    }

    /// Adds a pod that was not admitted: reason and message.
    pub(crate) fn reject(&self, pod: &Arc<Pod>, reason: &str, message: &str) {
        self.send(pod, Some((reason.to_owned(), message.to_owned())));
    }

    fn send(&self, pod: &Arc<Pod>, rejected: Option<(String, String)>) {
        let uid = Text::new(pod.uid());
        let mut mailboxes = self.mailboxes.lock();

        let mailbox = mailboxes.entry(uid.clone()).or_insert_with(|| {
            let request = WorkerRequest {
                pod: pod.clone(),
                is_deleted: false,
                rejected,
            };

            let mailbox = Arc::new(Mailbox {
                request: Mutex::new(request),
                changed: Notify::new(),
                must_sync: AtomicBool::new(false),
                termination: watch::channel(None).0,
            });
            let worker = PodWorker::new(self.shared.clone(), mailbox.clone(), pod);

            let (mailboxes, finished) = (self.mailboxes.clone(), self.finished.clone());
            self.tasks.spawn(async move {
                worker.run().await;
                mailboxes.lock().remove(&uid);
                finished.notify_one();
            });

            mailbox
        });
        mailbox.request.lock().pod = pod.clone();

        if pod.is_being_deleted() {
            mailbox.terminate_within(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        } else if pod.has_terminal_phase() {
            mailbox.terminate_within(grace_period(pod));
        }

        mailbox.changed.notify_one();
    }

    /// The object of a pod was deleted, whether or not the pod has terminated.
    pub(crate) fn remove(&self, uid: &str) {
        if let Some(mailbox) = self.mailboxes.lock().get(uid) {
            let grace = {
                let mut request = mailbox.request.lock();
                request.is_deleted = true;
                request
                    .pod
                    .metadata
                    .deletion_grace_period_seconds
                    .unwrap_or_else(|| grace_period(&request.pod))
            };
            mailbox.terminate_within(grace);

            mailbox.changed.notify_one();
        }
    }

    /// Wakes the worker of a pod.
    pub(crate) fn wake(&self, uid: &str) {
        if let Some(mailbox) = self.mailboxes.lock().get(uid) {
            mailbox.changed.notify_one();
        }
    }

    /// Syncs a pod whose ConfigMaps or Secrets have changed.
    pub(crate) fn refresh(&self, uid: &str) {
        if let Some(mailbox) = self.mailboxes.lock().get(uid) {
            mailbox.must_sync.store(true, Ordering::Relaxed);
            mailbox.changed.notify_one();
        }
    }

    pub(crate) fn wake_all(&self) {
        self.mailboxes
            .lock()
            .values()
            .for_each(|mailbox| mailbox.changed.notify_one());
    }

    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.mailboxes.lock().contains_key(uid)
    }

    /// Whether another pod of the same name has a worker.
    pub(crate) fn has_other_of_name(&self, pod: &Pod) -> bool {
        let named = |other: &Pod| {
            (other.namespace(), &other.metadata.name) == (pod.namespace(), &pod.metadata.name)
        };
        self.mailboxes
            .lock()
            .iter()
            .any(|(uid, mailbox)| uid != pod.uid() && named(&mailbox.request.lock().pod))
    }

    /// Resolves when a worker has finished.
    pub(crate) async fn worker_finished(&self) {
        self.finished.notified().await;
    }
}

impl Mailbox {
    /// Starts termination, or shortens its grace period.
    fn terminate_within(&self, seconds: i64) {
        let seconds = seconds.max(1);
        self.termination.send_if_modified(|termination| {
            let sooner = termination.is_none_or(|before| seconds < before);
            if sooner {
                *termination = Some(seconds);
            }
            sooner
        });
    }
}

/// The default grace period of a pod.
fn grace_period(pod: &Pod) -> i64 {
    pod.pod_spec()
        .termination_grace_period_seconds
        .unwrap_or(30)
}

/// The stage of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Syncing,
    Terminating,
    Terminated,
    Finished,
}

/// What a worker does next.
enum Next {
    /// Wait for a change, at most until this time.
    Wait(Instant),
    Stage(Stage),
}

struct PodWorker {
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    stage: Stage,
    /// The last computed status.
    status: Arc<PodStatus>,
    /// Waiting states of containers.
    waiting: BTreeMap<String, Waiting>,
    /// Why the pod failed: reason and message.
    failed: Option<(String, String)>,
    /// The state after the last sync, which need not be repeated while the state is the same.
    synced: Option<SyncedState>,
    /// The pod of the last sync.
    last_pod: Option<Arc<Pod>>,
    /// Until the pod has started.
    startup: Option<Startup>,
}

struct SyncedState {
    pod: Arc<Pod>,
    observed: Observed,
    verdicts: ProbeVerdicts,
    /// When a retry is due.
    due: Option<Timestamp>,
}

impl SyncedState {
    /// Whether there is nothing to do for a pod in this state. Changes of its status need no sync.
    fn is_current(&self, pod: &Pod, observed: &Observed, verdicts: &ProbeVerdicts) -> bool {
        let (before, now) = (&self.pod, pod);
        let same_spec = before.spec == now.spec
            && before.metadata.labels == now.metadata.labels
            && before.metadata.annotations == now.metadata.annotations;
        same_spec && self.observed == *observed && self.verdicts == *verdicts
    }
}

impl PodWorker {
    fn new(shared: Arc<Shared>, mailbox: Arc<Mailbox>, pod: &Pod) -> PodWorker {
        let failed = mailbox.request.lock().rejected.clone();
        shared.pod_metrics.arrived(pod);
        PodWorker {
            shared,
            mailbox,
            stage: Stage::Syncing,
            status: Arc::new(pod.pod_status().clone()),
            waiting: BTreeMap::new(),
            failed,
            synced: None,
            last_pod: None,
            startup: Startup::of(pod),
        }
    }

    async fn run(mut self) {
        if let Some((reason, message)) = &self.failed {
            let pod = self.request().pod;
            self.status = Arc::new(status::rejected(
                &pod,
                reason,
                message,
                self.shared.host.now(),
            ));
            self.stage = Stage::Terminated;
        }

        loop {
            let mailbox = self.mailbox.clone();
            let changed = mailbox.changed.notified();

            if mailbox.must_sync.swap(false, Ordering::Relaxed) {
                self.synced = None;
            }

            let next = match self.stage {
                Stage::Syncing => self.measured_sync().await,
                Stage::Terminating => {
                    let began = Instant::now();
                    let next = self.terminate().await;
                    self.shared.pod_metrics.synced("kill", began.elapsed());
                    next
                }
                Stage::Terminated => self.release_resources().await,
                Stage::Finished if self.request().is_deleted => return self.clean_up().await,
                Stage::Finished => self.republish(),
            };

            match next {
                Next::Stage(stage) => self.stage = stage,
                Next::Wait(until) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(until) => self.synced = None,
                    }
                }
            }
        }
    }

    async fn measured_sync(&mut self) -> Next {
        let shared = self.shared.clone();
        let (metrics, pod) = (&shared.pod_metrics, self.request().pod);
        let operation = match self.last_pod.replace(pod.clone()) {
            None => "create",
            Some(last) if Arc::ptr_eq(&last, &pod) => "sync",
            Some(_) => "update",
        };

        if let Some(startup) = &mut self.startup {
            startup.begin_sync(metrics);
            if startup.is_complete(&pod, shared.host.now(), metrics) {
                self.startup = None;
            }
        }

        let began = Instant::now();
        let next = self.sync().await;
        metrics.synced(operation, began.elapsed());
        next
    }

    fn request(&self) -> WorkerRequest {
        self.mailbox.request.lock().clone()
    }

    fn is_terminating(&self) -> bool {
        self.mailbox.termination.borrow().is_some()
    }

    /// Reads the pod's state from the runtime into the pod manager.
    async fn observe(&self, pod: &Pod) -> Result<Observed, coracle_cri::Error> {
        let host = &self.shared.host;
        let observed =
            observe_with_messages(host.runtime.as_ref(), &host.layout, pod.uid()).await?;
        self.shared
            .pod_manager
            .set_observed(pod.uid(), Arc::new(observed.clone()));
        Ok(observed)
    }

    fn verdicts(&self, pod: &Pod, observed: &Observed) -> ProbeVerdicts {
        let (probes, uid) = (&self.shared.probes, pod.uid());
        let mut verdicts = ProbeVerdicts::default();
        for seen in observed.running() {
            if let Some(kind) = probes.has_failed(uid, &seen.id) {
                verdicts.failed.insert(seen.id.clone(), kind);
            }
            if !probes.is_started(uid, &seen.name) {
                verdicts.not_started.insert(seen.name.clone());
            }
            if !probes.is_ready(uid, &seen.name) {
                verdicts.not_ready.insert(seen.name.clone());
            }
        }

        verdicts
    }

    /// Computes the status and publishes it.
    fn report(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        verdicts: &ProbeVerdicts,
        is_finished: bool,
    ) {
        self.report_status(pod, observed, verdicts, is_finished, false);
    }

    /// The same for an intermediate status during pod start.
    fn report_intermediate(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        verdicts: &ProbeVerdicts,
    ) {
        self.report_status(pod, observed, verdicts, false, true);
    }

    fn report_status(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        verdicts: &ProbeVerdicts,
        is_finished: bool,
        is_intermediate: bool,
    ) {
        let host = &self.shared.host;
        let status = status::pod_status(&StatusInputs {
            pod,
            observed,
            verdicts,
            before: &self.status,
            waiting: &self.waiting,
            host_addresses: &host.addresses,
            is_finished,
            failed: self
                .failed
                .as_ref()
                .map(|(reason, message)| (reason.as_str(), message.as_str())),
            runtime: &self.shared.runtime_name,
            now: host.now(),
        });

        if status.phase != self.status.phase {
            host.note(pod.uid(), "phase", status.phase.clone().unwrap_or_default());
        }

        if status.phase.as_deref() == Some("Running")
            && let Some(startup) = &mut self.startup
        {
            startup.runs(&self.shared.pod_metrics);
        }

        self.status = Arc::new(status);
        let report = self.build_report(pod, !is_finished, false);
        match is_intermediate && self.status.phase.as_deref() == Some("Pending") {
            true => self.shared.status_manager.publish_delayed(report),
            false => self.shared.status_manager.publish(report),
        }
    }

    fn publish(&self, pod: &Arc<Pod>, may_run: bool, is_finished: bool) {
        self.shared
            .status_manager
            .publish(self.build_report(pod, may_run, is_finished));
    }

    /// Updates the pod manager, and builds the report for the status manager.
    fn build_report(&self, pod: &Arc<Pod>, may_run: bool, is_finished: bool) -> Report {
        self.shared
            .pod_manager
            .set_status(pod.uid(), self.status.clone());
        Report {
            pod: pod.clone(),
            status: self.status.clone(),
            may_run,
            is_finished,
        }
    }

    /// Retry time after a failure: ten to fifteen seconds.
    fn retry_time(&self) -> Instant {
        Instant::now() + RETRY_DELAY.mul_f64(1.0 + 0.5 * self.shared.host.world.fraction())
    }
}

const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Sync interval without changes; up to half as long again.
const RESYNC_INTERVAL: Duration = Duration::from_secs(60);
