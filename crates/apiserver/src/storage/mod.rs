//! Stores objects in an etcd in upstream's format, so that upstream servers can share it.
//!
//! Above this layer, keys begin with `/registry` and values are JSON in the storage version.
//! [`Shared`] writes keys below the configured prefix ([`keys`]) and values as upstream does: in
//! its protobuf envelope, or as JSON where upstream stores JSON ([`values`]). Values that are read
//! are not converted: the decoders understand both. [`compaction`] removes revisions older than a
//! few minutes, in turns with the other servers of the etcd.

pub mod compaction;
mod keys;
mod values;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_store::{
    Event, KeyValue, LeaseId, LeaseStatus, Op, OpAnswer, RangeAnswer, RangeRequest, Revision,
    Store, StoreError, StoreStatus, Txn, TxnAnswer, Watch, WatchItem, WatchRequest, WatchSource,
};

use keys::Prefix;
pub use values::Media;
use values::Values;

/// A store that upstream's servers may use too.
pub struct Shared {
    store: Arc<dyn Store>,
    prefix: Prefix,
    values: Values,
}

impl Shared {
    /// `prefix`: the prefix of keys, `/registry` by default.
    pub fn new(store: Arc<dyn Store>, prefix: &str, media: Media) -> Shared {
        Shared {
            store,
            prefix: Prefix::new(prefix),
            values: Values::new(media),
        }
    }

    fn txn_down(&self, txn: Txn) -> Txn {
        let compare = txn.compare.into_iter().map(|mut compare| {
            compare.range = self.prefix.range(&compare.range);
            compare
        });

        Txn {
            compare: compare.collect(),
            then: txn.then.into_iter().map(|op| self.op_down(op)).collect(),
            otherwise: txn
                .otherwise
                .into_iter()
                .map(|op| self.op_down(op))
                .collect(),
        }
    }

    fn op_down(&self, op: Op) -> Op {
        match op {
            Op::Range(mut request) => {
                request.range = self.prefix.range(&request.range);
                Op::Range(request)
            }
            Op::Put(mut put) => {
                put.value = self.values.stored(&put.key, put.value);
                put.key = self.prefix.down(&put.key);
                Op::Put(put)
            }
            Op::Delete(mut delete) => {
                delete.range = self.prefix.range(&delete.range);
                Op::Delete(delete)
            }
            Op::Txn(txn) => Op::Txn(self.txn_down(txn)),
        }
    }

    fn txn_up(&self, mut answer: TxnAnswer) -> TxnAnswer {
        for answer in &mut answer.answers {
            match answer {
                OpAnswer::Range(answer) => self.prefix.up_all(&mut answer.kvs),
                OpAnswer::Put { previous } => {
                    if let Some(kv) = previous {
                        self.prefix.up(kv);
                    }
                }
                OpAnswer::Delete { previous, .. } => self.prefix.up_all(previous),
                OpAnswer::Txn(inner) => {
                    let taken = TxnAnswer {
                        answers: std::mem::take(&mut inner.answers),
                        ..inner.clone()
                    };
                    *inner = self.txn_up(taken);
                }
            }
        }

        answer
    }
}

#[async_trait]
impl Store for Shared {
    async fn range(&self, mut request: RangeRequest) -> Result<RangeAnswer, StoreError> {
        request.range = self.prefix.range(&request.range);
        let mut answer = self.store.range(request).await?;
        self.prefix.up_all(&mut answer.kvs);
        Ok(answer)
    }

    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, StoreError> {
        Ok(self.txn_up(self.store.txn(self.txn_down(txn)).await?))
    }

    async fn watch(&self, mut request: WatchRequest) -> Result<Watch, StoreError> {
        request.range = self.prefix.range(&request.range);
        let watch = self.store.watch(request).await?;
        let created_at = watch.created_at();
        Ok(Watch::new(
            created_at,
            Box::new(UnprefixedWatch {
                watch,
                prefix: self.prefix.clone(),
            }),
        ))
    }

    async fn current_revision(&self) -> Result<Revision, StoreError> {
        self.store.current_revision().await
    }

    async fn progress(&self) -> Result<(), StoreError> {
        self.store.progress().await
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.store.compact(revision).await
    }

    async fn grant_lease(
        &self,
        ttl: Duration,
        id: Option<LeaseId>,
    ) -> Result<LeaseStatus, StoreError> {
        self.store.grant_lease(ttl, id).await
    }

    async fn keep_lease_alive(&self, id: LeaseId) -> Result<Duration, StoreError> {
        self.store.keep_lease_alive(id).await
    }

    async fn revoke_lease(&self, id: LeaseId) -> Result<Revision, StoreError> {
        self.store.revoke_lease(id).await
    }

    async fn lease_status(&self, id: LeaseId) -> Result<LeaseStatus, StoreError> {
        self.store.lease_status(id).await
    }

    async fn leases(&self) -> Result<Vec<LeaseId>, StoreError> {
        self.store.leases().await
    }

    async fn status(&self) -> Result<StoreStatus, StoreError> {
        self.store.status().await
    }
}

/// A watch whose keys are those that everything above knows.
struct UnprefixedWatch {
    watch: Watch,
    prefix: Prefix,
}

#[async_trait]
impl WatchSource for UnprefixedWatch {
    async fn next(&mut self) -> Result<WatchItem, StoreError> {
        let mut item = self.watch.next().await?;
        if let WatchItem::Events(events) = &mut item {
            for Event { kv, previous, .. } in events {
                self.prefix.up(kv);
                let previous: Option<&mut KeyValue> = previous.as_mut();
                previous.into_iter().for_each(|kv| self.prefix.up(kv));
            }
        }
        Ok(item)
    }

    fn request_progress(&mut self) {
        self.watch.request_progress();
    }
}
