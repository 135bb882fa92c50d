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

mod end;
mod files;
mod kill;
mod launch;
mod sandbox;
mod sync;

pub(crate) use sync::chain;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::Tasks;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::actions::Verdicts;
use crate::kubelet::Shared;
use crate::observe::observe_with_messages;
use crate::observed::Observed;
use crate::pod::PodView;
use crate::publish::Report;
use crate::status::{self, Facts, Waiting};

/// All pod workers of a node. Clones share state.
#[derive(Clone)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    mailboxes: Arc<Mutex<BTreeMap<Text, Arc<Mailbox>>>>,
    /// Notified when a worker has finished.
    left: Arc<Notify>,
    tasks: Tasks,
}

/// The inputs of a worker.
struct Mailbox {
    orders: Mutex<Orders>,
    changed: Notify,
    /// The pod must be synced even if nothing seems to have changed.
    is_stale: AtomicBool,
    /// The grace period of the termination in seconds; none: the pod is not terminating.
    ending: watch::Sender<Option<i64>>,
}

#[derive(Clone)]
struct Orders {
    pod: Arc<Pod>,
    /// The object was deleted.
    is_gone: bool,
    /// It was not admitted: reason and message.
    rejected: Option<(String, String)>,
}

impl Workers {
    pub(crate) fn new(shared: Arc<Shared>, tasks: Tasks) -> Workers {
        Workers {
            shared,
            mailboxes: Arc::default(),
            left: Arc::default(),
            tasks,
        }
    }

    /// Adds or updates a pod.
    pub(crate) fn update(&self, pod: &Arc<Pod>) {
        self.tell(pod, None);
    }

    /// Adds a pod that was not admitted: reason and message.
    pub(crate) fn reject(&self, pod: &Arc<Pod>, reason: &str, message: &str) {
        self.tell(pod, Some((reason.to_owned(), message.to_owned())));
    }

    fn tell(&self, pod: &Arc<Pod>, rejected: Option<(String, String)>) {
        let uid = Text::new(pod.uid());
        let mut mailboxes = lock(&self.mailboxes);

        let mailbox = mailboxes.entry(uid.clone()).or_insert_with(|| {
            let orders = Orders {
                pod: pod.clone(),
                is_gone: false,
                rejected,
            };

            let mailbox = Arc::new(Mailbox {
                orders: Mutex::new(orders),
                changed: Notify::new(),
                is_stale: AtomicBool::new(false),
                ending: watch::channel(None).0,
            });
            let worker = Worker::new(self.shared.clone(), mailbox.clone(), pod);

            let (mailboxes, left) = (self.mailboxes.clone(), self.left.clone());
            self.tasks.spawn(async move {
                worker.run().await;
                lock(&mailboxes).remove(&uid);
                left.notify_one();
            });

            mailbox
        });
        lock(&mailbox.orders).pod = pod.clone();

        if pod.is_being_deleted() {
            mailbox.end_within(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        } else if pod.has_terminal_phase() {
            mailbox.end_within(grace_of(pod));
        }

        mailbox.changed.notify_one();
    }

    /// The object of a pod was deleted, whether or not the pod has terminated.
    pub(crate) fn remove(&self, uid: &str) {
        if let Some(mailbox) = lock(&self.mailboxes).get(uid) {
            let grace = {
                let mut orders = lock(&mailbox.orders);
                orders.is_gone = true;
                orders
                    .pod
                    .metadata
                    .deletion_grace_period_seconds
                    .unwrap_or_else(|| grace_of(&orders.pod))
            };
            mailbox.end_within(grace);

            mailbox.changed.notify_one();
        }
    }

    /// Wakes the worker of a pod.
    pub(crate) fn poke(&self, uid: &str) {
        if let Some(mailbox) = lock(&self.mailboxes).get(uid) {
            mailbox.changed.notify_one();
        }
    }

    /// Syncs a pod whose ConfigMaps or Secrets have changed.
    pub(crate) fn refresh(&self, uid: &str) {
        if let Some(mailbox) = lock(&self.mailboxes).get(uid) {
            mailbox.is_stale.store(true, Ordering::Relaxed);
            mailbox.changed.notify_one();
        }
    }

    pub(crate) fn poke_all(&self) {
        lock(&self.mailboxes)
            .values()
            .for_each(|mailbox| mailbox.changed.notify_one());
    }

    pub(crate) fn knows(&self, uid: &str) -> bool {
        lock(&self.mailboxes).contains_key(uid)
    }

    /// Whether another pod of the same name has a worker.
    pub(crate) fn has_namesake(&self, pod: &Pod) -> bool {
        let named = |other: &Pod| {
            (other.namespace(), &other.metadata.name) == (pod.namespace(), &pod.metadata.name)
        };
        lock(&self.mailboxes)
            .iter()
            .any(|(uid, mailbox)| uid != pod.uid() && named(&lock(&mailbox.orders).pod))
    }

    /// Resolves when a worker has finished.
    pub(crate) async fn one_left(&self) {
        self.left.notified().await;
    }
}

impl Mailbox {
    /// Starts termination, or shortens its grace period.
    fn end_within(&self, seconds: i64) {
        let seconds = seconds.max(1);
        self.ending.send_if_modified(|ending| {
            let sooner = ending.is_none_or(|before| seconds < before);
            if sooner {
                *ending = Some(seconds);
            }
            sooner
        });
    }
}

/// The default grace period of a pod.
fn grace_of(pod: &Pod) -> i64 {
    pod.pod_spec()
        .termination_grace_period_seconds
        .unwrap_or(30)
}

/// The stage of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Syncing,
    Ending,
    Ended,
    Finished,
}

/// What a worker does next.
enum Next {
    /// Wait for a change, at most until this time.
    Wait(Instant),
    Stage(Stage),
}

struct Worker {
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
    settled: Option<Settled>,
}

struct Settled {
    pod: Arc<Pod>,
    observed: Observed,
    verdicts: Verdicts,
    /// When a retry is due.
    due: Option<Timestamp>,
}

impl Settled {
    /// Whether there is nothing to do for a pod in this state. Changes of its status need no sync.
    fn still_holds(&self, pod: &Pod, observed: &Observed, verdicts: &Verdicts) -> bool {
        let (before, now) = (&self.pod, pod);
        let same_wishes = before.spec == now.spec
            && before.metadata.labels == now.metadata.labels
            && before.metadata.annotations == now.metadata.annotations;
        same_wishes && self.observed == *observed && self.verdicts == *verdicts
    }
}

impl Worker {
    fn new(shared: Arc<Shared>, mailbox: Arc<Mailbox>, pod: &Pod) -> Worker {
        let failed = lock(&mailbox.orders).rejected.clone();
        Worker {
            shared,
            mailbox,
            stage: Stage::Syncing,
            status: Arc::new(pod.pod_status().clone()),
            waiting: BTreeMap::new(),
            failed,
            settled: None,
        }
    }

    async fn run(mut self) {
        if let Some((reason, message)) = &self.failed {
            let pod = self.orders().pod;
            self.status = Arc::new(status::rejected(
                &pod,
                reason,
                message,
                self.shared.host.now(),
            ));
            self.stage = Stage::Ended;
        }

        loop {
            let mailbox = self.mailbox.clone();
            let changed = mailbox.changed.notified();

            if mailbox.is_stale.swap(false, Ordering::Relaxed) {
                self.settled = None;
            }

            let next = match self.stage {
                Stage::Syncing => self.sync().await,
                Stage::Ending => self.end().await,
                Stage::Ended => self.give_back().await,
                Stage::Finished if self.orders().is_gone => return self.leave_nothing().await,
                Stage::Finished => self.tell_once_more(),
            };

            match next {
                Next::Stage(stage) => self.stage = stage,
                Next::Wait(until) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(until) => self.settled = None,
                    }
                }
            }
        }
    }

    fn orders(&self) -> Orders {
        lock(&self.mailbox.orders).clone()
    }

    fn must_end(&self) -> bool {
        self.mailbox.ending.borrow().is_some()
    }

    /// Reads the pod's state from the runtime into the pod manager.
    async fn look(&self, pod: &Pod) -> Result<Observed, coracle_cri::Error> {
        let host = &self.shared.host;
        let observed =
            observe_with_messages(host.runtime.as_ref(), &host.layout, pod.uid()).await?;
        self.shared
            .roster
            .observe(pod.uid(), Arc::new(observed.clone()));
        Ok(observed)
    }

    fn verdicts(&self, pod: &Pod, observed: &Observed) -> Verdicts {
        let (probes, uid) = (&self.shared.probes, pod.uid());
        let mut verdicts = Verdicts::default();
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
    fn report(&mut self, pod: &Arc<Pod>, observed: &Observed, verdicts: &Verdicts, is_over: bool) {
        self.report_as(pod, observed, verdicts, is_over, false);
    }

    /// The same for an intermediate status during pod start.
    fn report_meanwhile(&mut self, pod: &Arc<Pod>, observed: &Observed, verdicts: &Verdicts) {
        self.report_as(pod, observed, verdicts, false, true);
    }

    fn report_as(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        verdicts: &Verdicts,
        is_over: bool,
        is_passing: bool,
    ) {
        let host = &self.shared.host;
        let status = status::pod_status(&Facts {
            pod,
            observed,
            verdicts,
            before: &self.status,
            waiting: &self.waiting,
            host_addresses: &host.addresses,
            is_over,
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

        self.status = Arc::new(status);
        let report = self.tell(pod, !is_over, false);
        match is_passing && self.status.phase.as_deref() == Some("Pending") {
            true => self.shared.publisher.publish_meanwhile(report),
            false => self.shared.publisher.publish(report),
        }
    }

    fn publish(&self, pod: &Arc<Pod>, may_run: bool, is_finished: bool) {
        self.shared
            .publisher
            .publish(self.tell(pod, may_run, is_finished));
    }

    /// Updates the pod manager, and builds the report for the status manager.
    fn tell(&self, pod: &Arc<Pod>, may_run: bool, is_finished: bool) -> Report {
        self.shared.roster.report(pod.uid(), self.status.clone());
        Report {
            pod: pod.clone(),
            status: self.status.clone(),
            may_run,
            is_finished,
        }
    }

    /// Retry time after a failure: ten to fifteen seconds.
    fn later(&self) -> Instant {
        Instant::now() + AFTER_FAILURE.mul_f64(1.0 + 0.5 * self.shared.host.world.fraction())
    }
}

const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// Sync interval without changes; up to half as long again.
const RESYNC: Duration = Duration::from_secs(60);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
