//! The store: revisioned, durable, ordered. It knows bytes and revisions, and nothing of
//! Kubernetes.
//!
//! [`Store`] is the one face: etcd's semantics as a trait. Two engines stand behind it. The
//! *embedded* one keeps live values in memory and everything on disk in an append-only log; it is
//! the default. The *etcd* one speaks to a cluster. What is written enters through [`Store::txn`]
//! (or one of its shorthands [`Store::create`], [`Store::replace`], [`Store::remove`]), gets a
//! [`Revision`], and comes out again through [`Store::range`] and
//! [`Store::watch`]. Values are shared [`bytes::Bytes`]: whoever reads one holds the bytes the store holds.
//!
//! `contract` (feature `testing`) is what every engine must pass; `checker` tells whether what was
//! recorded of one under load and failures was possible. `face` shows the embedded engine as an
//! etcd, `migrate` takes what one store holds into another.

#[cfg(feature = "testing")]
pub mod checker;
#[cfg(feature = "testing")]
#[expect(
    clippy::unwrap_used,
    reason = "checks are tests: they panic where the store is wrong"
)]
pub mod contract;
pub mod embedded;
mod error;
pub mod etcd;
pub mod face;
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
