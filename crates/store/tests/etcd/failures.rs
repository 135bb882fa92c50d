//! Failures of a cluster: members are killed or stopped and come back while a test runs. And a
//! store that counts the requests that failed.

use crate::cluster::Cluster;
use async_trait::async_trait;
use coracle_store::{
    LeaseId, LeaseStatus, RangeAnswer, RangeRequest, Revision, Store, StoreError, StoreStatus, Txn,
    TxnAnswer, Watch, WatchRequest,
};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::{sync::oneshot, task::JoinHandle, time::sleep};

/// The time between a member's return and the next failure, and how long a member is down.
const QUIET: Duration = Duration::from_millis(900);
const AWAY: Duration = Duration::from_millis(500);
/// How long a member hangs: longer than [`ATTEMPT_TIMEOUT`], so that clients switch to another.
const HANGS: Duration = Duration::from_millis(2500);
/// The attempt timeout of clients where members hang.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// How a member fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is killed, which clients notice at once.
    Killed,
    /// It hangs: it is there and does not answer.
    Hung,
}

/// Makes one member after the other fail until it is stopped.
pub(crate) struct Failures {
    stop: oneshot::Sender<()>,
    task: JoinHandle<(Cluster, usize)>,
}

impl Failures {
    pub(crate) fn begin(mut cluster: Cluster, failure: Failure) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut count = 0;
            while stopped.try_recv().is_err() {
                sleep(QUIET).await;
                let member = count % cluster.len();
                match failure {
                    Failure::Killed => {
                        cluster.kill(member);
                        sleep(AWAY).await;
                        cluster.restart(member);
                    }
                    Failure::Hung => {
                        cluster.hang(member);
                        sleep(HANGS).await;
                        cluster.wake(member);
                    }
                }

                cluster.wait().await;
                count += 1;
            }

            (cluster, count)
        });

        Failures { stop, task }
    }

    /// Stops it and returns how often a member failed.
    pub(crate) async fn end(self) -> usize {
        self.stop().await.1
    }

    /// Stops it and returns the cluster, and how often a member failed.
    pub(crate) async fn stop(self) -> (Cluster, usize) {
        // It may have panicked already; the next line reports that.
        self.stop.send(()).unwrap_or_default();
        self.task.await.unwrap()
    }
}

/// A store that counts the requests that failed as unavailable.
pub(crate) struct Counting<S> {
    store: S,
    unavailable: AtomicUsize,
}

impl<S> Counting<S> {
    pub(crate) fn new(store: S) -> Self {
        Counting {
            store,
            unavailable: AtomicUsize::new(0),
        }
    }

    pub(crate) fn take_count(&self) -> usize {
        self.unavailable.swap(0, Ordering::Relaxed)
    }

    fn note<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Unavailable(_)) = &outcome {
            self.unavailable.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

#[async_trait]
impl<S: Store> Store for Counting<S> {
    async fn range(&self, request: RangeRequest) -> Result<RangeAnswer, StoreError> {
        self.note(self.store.range(request).await)
    }

    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, StoreError> {
        self.note(self.store.txn(txn).await)
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, StoreError> {
        self.note(self.store.watch(request).await)
    }

    async fn current_revision(&self) -> Result<Revision, StoreError> {
        self.note(self.store.current_revision().await)
    }

    async fn progress(&self) -> Result<(), StoreError> {
        self.note(self.store.progress().await)
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.note(self.store.compact(revision).await)
    }

    async fn grant_lease(
        &self,
        ttl: Duration,
        id: Option<LeaseId>,
    ) -> Result<LeaseStatus, StoreError> {
        self.note(self.store.grant_lease(ttl, id).await)
    }

    async fn keep_lease_alive(&self, id: LeaseId) -> Result<Duration, StoreError> {
        self.note(self.store.keep_lease_alive(id).await)
    }

    async fn revoke_lease(&self, id: LeaseId) -> Result<Revision, StoreError> {
        self.note(self.store.revoke_lease(id).await)
    }

    async fn lease_status(&self, id: LeaseId) -> Result<LeaseStatus, StoreError> {
        self.note(self.store.lease_status(id).await)
    }

    async fn leases(&self) -> Result<Vec<LeaseId>, StoreError> {
        self.note(self.store.leases().await)
    }

    async fn status(&self) -> Result<StoreStatus, StoreError> {
        self.note(self.store.status().await)
    }
}
