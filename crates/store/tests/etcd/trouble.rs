//! Trouble for a cluster: members are killed or hang and come back while something else goes on.
//! And a store that notes how often trouble was felt.

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

/// Between a member's return and the next one's end, and how long it is away.
const QUIET: Duration = Duration::from_millis(900);
const AWAY: Duration = Duration::from_millis(500);
/// How long a member hangs: longer than [`IMPATIENCE`], so that it is given up.
const HANGS: Duration = Duration::from_millis(2500);
/// How long to wait for one member where members hang.
pub(crate) const IMPATIENCE: Duration = Duration::from_secs(1);

/// What befalls a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// It is gone, and everybody sees that at once.
    Killed,
    /// It is there and says nothing.
    Hung,
}

/// Strikes one member after the other until it is told to end.
pub(crate) struct Trouble {
    stop: oneshot::Sender<()>,
    task: JoinHandle<(Cluster, usize)>,
}

impl Trouble {
    pub(crate) fn begin(mut cluster: Cluster, blow: Blow) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut blows = 0;
            while stopped.try_recv().is_err() {
                sleep(QUIET).await;
                let member = blows % cluster.len();
                match blow {
                    Blow::Killed => {
                        cluster.kill(member);
                        sleep(AWAY).await;
                        cluster.restart(member);
                    }
                    Blow::Hung => {
                        cluster.hang(member);
                        sleep(HANGS).await;
                        cluster.wake(member);
                    }
                }

                cluster.wait().await;
                blows += 1;
            }

            (cluster, blows)
        });

        Trouble { stop, task }
    }

    /// Ends it; tells how often a member was struck.
    pub(crate) async fn end(self) -> usize {
        self.calm().await.1
    }

    /// Ends it, and gives back the cluster with how often a member was struck.
    pub(crate) async fn calm(self) -> (Cluster, usize) {
        // It may have ended already, by a panic that the next line tells.
        self.stop.send(()).unwrap_or_default();
        self.task.await.unwrap()
    }
}

/// A store that counts the requests it could not answer.
pub(crate) struct Noting<S> {
    store: S,
    unavailable: AtomicUsize,
}

impl<S> Noting<S> {
    pub(crate) fn new(store: S) -> Self {
        Noting {
            store,
            unavailable: AtomicUsize::new(0),
        }
    }

    pub(crate) fn take_notes(&self) -> usize {
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
impl<S: Store> Store for Noting<S> {
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
