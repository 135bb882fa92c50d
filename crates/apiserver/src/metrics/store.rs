//! A store that measures each operation: how long it takes, and which fail.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::catalog::BUILTIN;
use coracle_metrics::Labels;
use coracle_store::{
    LeaseId, LeaseStatus, Op, RangeAnswer, RangeRequest, Revision, Store, StoreError, StoreStatus,
    Txn, TxnAnswer, Watch, WatchRequest,
};
use tokio::time::Instant;

use super::Metrics;
use super::resource::GroupResource;
use crate::cache::{Caches, ROOT};
use crate::storage_version::StorageVersion;

/// The operations on the store, with upstream's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OperationKind {
    Get,
    Put,
    Delete,
    Txn,
}

impl OperationKind {
    fn name(self) -> &'static str {
        match self {
            OperationKind::Get => "get",
            OperationKind::Put => "update",
            OperationKind::Delete => "delete",
            OperationKind::Txn => "txn",
        }
    }
}

/// An operation, and the resource whose objects it is about.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Operation {
    kind: OperationKind,
    resource: Option<GroupResource>,
}

impl Labels for Operation {
    fn values(&self) -> Vec<Cow<'_, str>> {
        let mut values = vec![Cow::Borrowed(self.kind.name())];
        match &self.resource {
            Some(resource) => values.extend(resource.values()),
            None => values.extend(["", ""].map(Cow::Borrowed)),
        }
        values
    }
}

impl Operation {
    fn of_txn(txn: &Txn, caches: &Caches) -> Operation {
        let kind = match txn.then.as_slice() {
            [Op::Put(_)] => OperationKind::Put,
            [Op::Delete(_)] => OperationKind::Delete,
            _ => OperationKind::Txn,
        };
        let key = txn.then.first().map(|op| match op {
            Op::Put(put) => Some(&put.key[..]),
            Op::Delete(delete) => Some(&delete.range.start()[..]),
            Op::Range(request) => Some(&request.range.start()[..]),
            Op::Txn(_) => None,
        });

        Operation {
            kind,
            resource: key.flatten().and_then(|key| resource_of(key, caches)),
        }
    }
}

/// The resource whose objects have this key: below its prefix, which has one part or two. That of a
/// custom resource has its group and its plural.
fn resource_of(key: &[u8], caches: &Caches) -> Option<GroupResource> {
    static PREFIXES: LazyLock<HashMap<&'static [u8], GroupResource>> = LazyLock::new(|| {
        BUILTIN
            .resources()
            .iter()
            .filter_map(|resource| {
                let storage = resource.storage.as_ref()?;
                Some((
                    storage.prefix.as_bytes(),
                    GroupResource::built_in(StorageVersion::of(resource).resource),
                ))
            })
            .collect()
    });

    let below = key.strip_prefix(ROOT.as_bytes())?;
    let mut ends = below
        .iter()
        .enumerate()
        .filter_map(|(place, byte)| (*byte == b'/').then_some(place));
    let first = ends.next()?;
    let second = ends.next();

    let built_in = [Some(first), second]
        .into_iter()
        .flatten()
        .find_map(|end| PREFIXES.get(&below[..end]).cloned());
    built_in.or_else(|| {
        let group = std::str::from_utf8(&below[..first]).ok()?;
        let plural = std::str::from_utf8(&below[first + 1..second?]).ok()?;
        let definitions = caches.definitions();
        let version = definitions.get(group, plural)?.versions.first()?;
        Some(GroupResource::custom(&version.names))
    })
}

/// A store whose operations are counted.
pub struct MeasuredStore {
    pub store: Arc<dyn Store>,
    pub metrics: Arc<Metrics>,
    pub caches: Arc<Caches>,
}

impl MeasuredStore {
    async fn timed<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let result = work.await;
        let counted = &self.metrics.counted;
        counted.operations.of(&operation).took(began.elapsed());
        if result.is_err() {
            counted.operation_errors.of(&operation).inc();
        }
        result
    }
}

#[async_trait]
impl Store for MeasuredStore {
    async fn range(&self, request: RangeRequest) -> Result<RangeAnswer, StoreError> {
        let operation = Operation {
            kind: OperationKind::Get,
            resource: resource_of(request.range.start(), &self.caches),
        };
        self.timed(operation, self.store.range(request)).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, StoreError> {
        let operation = Operation::of_txn(&txn, &self.caches);
        self.timed(operation, self.store.txn(txn)).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, StoreError> {
        self.store.watch(request).await
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
