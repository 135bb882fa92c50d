//! The trait that both engines implement.

use crate::{
    Compare, Delete, KeyRange, KeyValue, LeaseId, LeaseStatus, Op, OpAnswer, Put, RangeAnswer,
    RangeRequest, Revision, StoreError, SwapError, Txn, TxnAnswer, Watch, WatchRequest,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

/// A revisioned key-value store with etcd's semantics.
///
/// # Guarantees
/// Strictly serializable: a request sees every write acknowledged before it was made. An
/// acknowledged write is durable, and no reader sees one that is not. The revision never goes
/// down, not over restarts, compactions, restores or migrations.
///
/// # Cancellation
/// A write whose future is dropped happens wholly or not at all.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Reads a range of keys.
    async fn range(&self, request: RangeRequest) -> Result<RangeAnswer, StoreError>;

    /// Runs a transaction.
    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, StoreError>;

    /// Opens a watch. [`StoreError::Compacted`] if its first revision is compacted.
    async fn watch(&self, request: WatchRequest) -> Result<Watch, StoreError>;

    /// The newest revision: not older than any write acknowledged before the call.
    async fn current_revision(&self) -> Result<Revision, StoreError>;

    /// Requests a [`crate::WatchItem::Progress`] on every open watch of this store. Together with
    /// [`Store::current_revision`] this is how a cache proves that it is fresh: it has applied
    /// everything once it gets progress at that revision.
    async fn progress(&self) -> Result<(), StoreError>;

    /// Discards the history before `revision`, which itself stays readable and watchable.
    /// [`StoreError::Compacted`] if it is compacted already, [`StoreError::FutureRevision`] if the
    /// store has not reached it.
    async fn compact(&self, revision: Revision) -> Result<(), StoreError>;

    /// Creates a lease that expires after `ttl` unless it is kept alive. The store picks an id if
    /// none is given, and may grant a longer time than requested; the status has both.
    async fn grant_lease(
        &self,
        ttl: Duration,
        id: Option<LeaseId>,
    ) -> Result<LeaseStatus, StoreError>;

    /// Renews the lease and returns its time to live.
    async fn keep_lease_alive(&self, id: LeaseId) -> Result<Duration, StoreError>;

    /// Revokes a lease and deletes its keys at one revision. Returns the store's revision after
    /// that.
    async fn revoke_lease(&self, id: LeaseId) -> Result<Revision, StoreError>;

    async fn lease_status(&self, id: LeaseId) -> Result<LeaseStatus, StoreError>;

    async fn leases(&self) -> Result<Vec<LeaseId>, StoreError>;

    /// The size and revisions of the store.
    async fn status(&self) -> Result<StoreStatus, StoreError>;

    /// Reads one key.
    async fn get(&self, key: Bytes) -> Result<Option<KeyValue>, StoreError> {
        Ok(self
            .range(RangeRequest::new(KeyRange::single(key)))
            .await?
            .kvs
            .pop())
    }

    /// Writes one key unconditionally.
    async fn put(&self, put: Put) -> Result<Revision, StoreError> {
        let txn = Txn {
            then: vec![Op::Put(put)],
            ..Txn::default()
        };
        Ok(self.txn(txn).await?.revision)
    }

    /// Deletes every key of a range and returns their number.
    async fn delete(&self, range: KeyRange) -> Result<(Revision, u64), StoreError> {
        let txn = Txn {
            then: vec![Op::Delete(Delete::new(range))],
            ..Txn::default()
        };
        let mut answer = self.txn(txn).await?;
        let deleted = match answer.answers.pop() {
            Some(OpAnswer::Delete { deleted, .. }) => deleted,
            _ => 0,
        };
        Ok((answer.revision, deleted))
    }

    /// Writes `put` if its key does not exist.
    async fn create(&self, put: Put) -> Result<Revision, SwapError> {
        self.replace(Revision::ZERO, put).await
    }

    /// Writes `put` if its key is unchanged since `seen`. Of several writers that saw the same
    /// revision exactly one succeeds; the others get a conflict with the current state.
    async fn replace(&self, seen: Revision, put: Put) -> Result<Revision, SwapError> {
        let key = put.key.clone();
        swapped(self.txn(swap(key, seen, Op::Put(put))).await?)
    }

    /// Deletes `key` if it is unchanged since `seen`.
    async fn remove(&self, key: Bytes, seen: Revision) -> Result<Revision, SwapError> {
        let delete = Delete::new(KeyRange::single(key.clone()));
        swapped(self.txn(swap(key, seen, Op::Delete(delete))).await?)
    }
}

/// The size and revisions of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    pub revision: Revision,
    /// The oldest revision that is not compacted.
    pub compacted: Revision,
    /// The total size of all files in bytes.
    pub file_bytes: u64,
    /// The bytes of live data and history.
    pub used_bytes: u64,
    /// The server's version: etcd's, or the one that the embedded engine is compatible with.
    pub version: String,
}

fn swap(key: Bytes, seen: Revision, op: Op) -> Txn {
    let found = RangeRequest::new(KeyRange::single(key.clone()));
    Txn {
        compare: vec![Compare::unchanged_since(key, seen)],
        then: vec![op],
        otherwise: vec![Op::Range(found)],
    }
}

fn swapped(mut answer: TxnAnswer) -> Result<Revision, SwapError> {
    if answer.succeeded {
        return Ok(answer.revision);
    }
    let found = match answer.answers.pop() {
        Some(OpAnswer::Range(mut range)) => range.kvs.pop().map(Box::new),
        _ => None,
    };
    Err(SwapError::Conflict {
        found,
        at: answer.revision,
    })
}
