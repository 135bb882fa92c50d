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
/// acknowledged write is durable, and nobody sees a write that is not. The revision never goes
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

    /// Opens a watch. [`StoreError::Compacted`] where its first revision is below the oldest kept
    /// one.
    async fn watch(&self, request: WatchRequest) -> Result<Watch, StoreError>;

    /// The newest revision: not older than any write acknowledged before the call.
    async fn current_revision(&self) -> Result<Revision, StoreError>;

    /// Asks every open watch of this store for a [`crate::WatchItem::Progress`]. With
    /// [`Store::current_revision`] this is how a cache proves itself fresh: it has applied
    /// everything once it was told of that revision.
    async fn progress(&self) -> Result<(), StoreError>;

    /// Forgets what was before `revision`, which stays readable and watchable itself.
    /// [`StoreError::Compacted`] if that was done already, [`StoreError::FutureRevision`] if the
    /// store is not there yet.
    async fn compact(&self, revision: Revision) -> Result<(), StoreError>;

    /// Makes a lease that ends after `ttl` unless it is kept alive. The store picks an id where
    /// none is given, and may grant a longer time than asked; the answer tells.
    async fn grant_lease(
        &self,
        ttl: Duration,
        id: Option<LeaseId>,
    ) -> Result<LeaseStatus, StoreError>;

    /// Starts the lease's time anew and tells it.
    async fn keep_lease_alive(&self, id: LeaseId) -> Result<Duration, StoreError>;

    /// Ends a lease and deletes its keys, all at one revision. Answers with the store's revision
    /// then.
    async fn revoke_lease(&self, id: LeaseId) -> Result<Revision, StoreError>;

    async fn lease_status(&self, id: LeaseId) -> Result<LeaseStatus, StoreError>;

    async fn leases(&self) -> Result<Vec<LeaseId>, StoreError>;

    /// How large the store is, and where it stands.
    async fn status(&self) -> Result<StoreStatus, StoreError>;

    /// Reads one key.
    async fn get(&self, key: Bytes) -> Result<Option<KeyValue>, StoreError> {
        Ok(self
            .range(RangeRequest::new(KeyRange::single(key)))
            .await?
            .kvs
            .pop())
    }

    /// Writes one key, whatever it held.
    async fn put(&self, put: Put) -> Result<Revision, StoreError> {
        let txn = Txn {
            then: vec![Op::Put(put)],
            ..Txn::default()
        };
        Ok(self.txn(txn).await?.revision)
    }

    /// Deletes every key of a range, and tells how many there were.
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

    /// Writes `put` if its key is still as it was at `seen`. Of several writers that saw the same
    /// revision exactly one succeeds; the others get a conflict with what is there now.
    async fn replace(&self, seen: Revision, put: Put) -> Result<Revision, SwapError> {
        let key = put.key.clone();
        swapped(self.txn(swap(key, seen, Op::Put(put))).await?)
    }

    /// Deletes `key` if it is still as it was at `seen`.
    async fn remove(&self, key: Bytes, seen: Revision) -> Result<Revision, SwapError> {
        let delete = Delete::new(KeyRange::single(key.clone()));
        swapped(self.txn(swap(key, seen, Op::Delete(delete))).await?)
    }
}

/// How large a store is, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    pub revision: Revision,
    /// The oldest revision kept.
    pub compacted: Revision,
    /// Bytes of all files.
    pub file_bytes: u64,
    /// Bytes of them that hold live data or history still kept.
    pub used_bytes: u64,
    /// The server's version: etcd's, or the one the embedded engine speaks for.
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
