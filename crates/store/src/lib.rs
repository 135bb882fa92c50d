//! The store: a revisioned, durable, ordered key-value store. It stores bytes and knows nothing of
//! Kubernetes.
//!
//! [`Store`] is the interface: etcd's semantics as a trait, with two engines. The *embedded*
//! engine, the default, keeps live values in memory and everything on disk in an append-only log.
//! The *etcd* engine is a client of an etcd cluster. Data is written through [`Store::txn`] (or one
//! of its shorthands [`Store::create`], [`Store::replace`], [`Store::remove`]), gets a
//! [`Revision`], and is read through [`Store::range`] and [`Store::watch`]. Values are shared
//! [`bytes::Bytes`]: readers and store hold the same bytes.
//!
//! `contract` (feature `testing`) is the test suite that every engine must pass; `checker` verifies
//! histories recorded under load and failures. `etcd_server` serves the embedded engine over etcd's
//! API, `migrate` copies one store into another.

#[cfg(feature = "testing")]
pub mod checker;
#[cfg(feature = "testing")]
#[expect(
    clippy::unwrap_used,
    reason = "checks are tests: they panic when the store is wrong"
)]
pub mod contract;
pub mod embedded;
mod error;
pub mod etcd;
pub mod etcd_server;
#[cfg(test)]
#[path = "../../../fuzz/run_corpus.rs"]
mod fuzz_corpus;
mod key;
mod lease;
pub mod migrate;
mod range;
mod revision;
mod store;
mod thin;
mod txn;
mod watch;
mod wire;

pub use error::{InvalidRequest, StoreError, SwapError, Unavailable};
pub use key::{End, KeyRange, KeyValue};
pub use lease::{LeaseId, LeaseStatus};
pub use range::{Content, RangeAnswer, RangeRequest};
pub use revision::Revision;
pub use store::{Store, StoreStatus};
pub use thin::Thin;
pub use txn::{
    Compare, Delete, Op, OpAnswer, Put, PutLease, PutValue, Relation, Target, Txn, TxnAnswer,
};
pub use watch::{Event, EventKind, Watch, WatchItem, WatchRequest, WatchSource};
