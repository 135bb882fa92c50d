//! Transactions: compare, then write one thing or another, all at one revision.

use crate::{KeyRange, KeyValue, LeaseId, RangeAnswer, RangeRequest, Revision};
use bytes::Bytes;

/// If every comparison holds, runs `then`, else `otherwise`. The operations see what those before
/// them wrote; all writes share one revision, and a key may be written once only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    pub compare: Vec<Compare>,
    pub then: Vec<Op>,
    pub otherwise: Vec<Op>,
}

/// A condition on every key of a range. Where the range holds no key, version, revisions and lease
/// compare as zero and no value compares to anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    pub range: KeyRange,
    pub relation: Relation,
    pub with: Target,
}

/// How the stored property must stand to the given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Equal,
    NotEqual,
    Greater,
    Less,
}

/// Which property is compared, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Version(u64),
    CreateRevision(Revision),
    ModRevision(Revision),
    Value(Bytes),
    Lease(Option<LeaseId>),
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Range(RangeRequest),
    Put(Put),
    Delete(Delete),
    Txn(Txn),
}

/// Writes one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    pub key: Bytes,
    pub value: PutValue,
    pub lease: PutLease,
    /// Answer with what the key held before.
    pub previous: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutValue {
    /// The embedded engine keeps these very bytes. A small slice of a large buffer would keep all
    /// of it: copy that.
    Set(Bytes),
    /// The key must exist and keeps its value.
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutLease {
    None,
    Attach(LeaseId),
    /// The key must exist and keeps its lease.
    Keep,
}

/// Deletes every key of a range. Where there is none, nothing is written and the revision stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub range: KeyRange,
    /// Answer with what was deleted.
    pub previous: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnAnswer {
    /// The store's revision after the transaction: the new one if it wrote anything.
    pub revision: Revision,
    /// Whether the comparisons held.
    pub succeeded: bool,
    /// One answer for each operation that ran.
    pub answers: Vec<OpAnswer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpAnswer {
    Range(RangeAnswer),
    Put {
        previous: Option<KeyValue>,
    },
    Delete {
        deleted: u64,
        previous: Vec<KeyValue>,
    },
    Txn(TxnAnswer),
}

impl Compare {
    /// The key is as it was at `revision`; with [`Revision::ZERO`], it does not exist.
    pub fn unchanged_since(key: Bytes, revision: Revision) -> Self {
        Compare {
            range: KeyRange::single(key),
            relation: Relation::Equal,
            with: Target::ModRevision(revision),
        }
    }
}

impl Put {
    pub fn new(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Put {
            key: key.into(),
            value: PutValue::Set(value.into()),
            lease: PutLease::None,
            previous: false,
        }
    }

    /// The key goes away with this lease.
    #[must_use]
    pub fn lease(mut self, lease: Option<LeaseId>) -> Self {
        self.lease = lease.map_or(PutLease::None, PutLease::Attach);
        self
    }

    #[must_use]
    pub fn with_previous(mut self) -> Self {
        self.previous = true;
        self
    }
}

impl Delete {
    pub fn new(range: KeyRange) -> Self {
        Delete {
            range,
            previous: false,
        }
    }

    #[must_use]
    pub fn with_previous(mut self) -> Self {
        self.previous = true;
        self
    }
}
