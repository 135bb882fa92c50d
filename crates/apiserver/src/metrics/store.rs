//! A store that measures each operation: how long it takes, and which fail.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_store::{
    LeaseId, LeaseStatus, Op, RangeAnswer, RangeRequest, Revision, Store, StoreError, StoreStatus,
    Txn, TxnAnswer, Watch, WatchRequest,
};
use tokio::time::Instant;

use super::series::{Counter, Family, Histogram};
use super::text::Text;
use super::{Metrics, SECOND};

/// The operations on the store, with upstream's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Operation {
    Get,
    Put,
    Delete,
    Txn,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Get => "get",
            Operation::Put => "update",
            Operation::Delete => "delete",
            Operation::Txn => "txn",
        }
    }

    fn of(txn: &Txn) -> Operation {
        match txn.then.as_slice() {
            [Op::Put(_)] => Operation::Put,
            [Op::Delete(_)] => Operation::Delete,
            _ => Operation::Txn,
        }
    }
}

pub(super) fn write(
    operations: &Family<Operation, Histogram>,
    errors: &Family<Operation, Counter>,
    text: &mut Text,
) {
    let name = "etcd_request_duration_seconds";
    text.family(
        name,
        "histogram",
        "Latency of store operations in seconds, of an external etcd or the embedded store.",
    );

    let all = super::sorted(operations.all());
    for (operation, histogram) in &all {
        text.histogram(name, &[("operation", operation.name())], histogram, SECOND);
    }

    text.family(
        "etcd_requests_total",
        "counter",
        "Number of store operations.",
    );

    for (operation, histogram) in &all {
        let (_, count) = histogram.cumulated();
        text.sample(
            "etcd_requests_total",
            &[("operation", operation.name())],
            count,
        );
    }

    text.family(
        "etcd_request_errors_total",
        "counter",
        "Number of failed store operations.",
    );

    for (operation, counter) in super::sorted(errors.all()) {
        text.sample(
            "etcd_request_errors_total",
            &[("operation", operation.name())],
            counter.get(),
        );
    }
}

/// A store whose operations are counted.
pub struct MeasuredStore {
    pub store: Arc<dyn Store>,
    pub metrics: Arc<Metrics>,
}

impl MeasuredStore {
    async fn timed<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let result = work.await;
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.metrics.operations.of(&operation).observe(took);
        if result.is_err() {
            self.metrics.operation_errors.of(&operation).add(1);
        }
        result
    }
}

#[async_trait]
impl Store for MeasuredStore {
    async fn range(&self, request: RangeRequest) -> Result<RangeAnswer, StoreError> {
        self.timed(Operation::Get, self.store.range(request)).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, StoreError> {
        self.timed(Operation::of(&txn), self.store.txn(txn)).await
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
