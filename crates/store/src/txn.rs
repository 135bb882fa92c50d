//! Transactions: comparisons, then one of two lists of operations, all at one revision.

use crate::{KeyRange, KeyValue, LeaseId, RangeAnswer, RangeRequest, Revision};
use bytes::Bytes;

/// Runs `then` if every comparison holds, else `otherwise`. An operation sees the writes of those
/// before it; all writes share one revision, and a key may be written only once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    pub compare: Vec<Compare>,
    pub then: Vec<Op>,
    pub otherwise: Vec<Op>,
}

/// A condition on every key of a range. If the range has no key, version, revisions and lease
/// compare as zero and a value comparison fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    pub range: KeyRange,
    pub relation: Relation,
    pub with: Target,
}

/// How the stored property must relate to the given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Equal,
    NotEqual,
    Greater,
    Less,
}

/// The property that is compared, and the value to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Version(u64),
    CreateRevision(Revision),
    ModRevision(Revision),
    Value(Bytes),
    Lease(Option<LeaseId>),
}

/// One operation of a transaction.
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
    /// Return the key's previous state.
    pub previous: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutValue {
    /// The embedded engine keeps these bytes. A small slice of a large buffer keeps the whole
    /// buffer alive: copy it first.
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

/// Deletes every key of a range. If there is none, nothing is written and the revision does not
/// change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub range: KeyRange,
    /// Return the deleted keys.
    pub previous: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnAnswer {
    /// The store's revision after the transaction: a new one if it wrote anything.
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
    /// The key is unchanged since `revision`; with [`Revision::ZERO`], it does not exist.
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

    /// Attaches the key to this lease.
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
