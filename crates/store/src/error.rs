//! Why a store did not do what was asked.

use crate::{KeyValue, LeaseId, Revision};

/// Why a request failed. Each variant is something a caller does differently.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// List anew, then watch from there.
    #[error("required revision {requested} has been compacted, the oldest kept is {compacted}")]
    Compacted {
        requested: Revision,
        compacted: Revision,
    },
    /// Wait for the revision, or ask whether the right store answers.
    #[error("required revision {requested} is a future revision, the store is at {current}")]
    FutureRevision {
        requested: Revision,
        current: Revision,
    },
    #[error("lease {0} not found")]
    LeaseNotFound(LeaseId),
    #[error("lease {0} already exists")]
    LeaseExists(LeaseId),
    /// The request itself is wrong; asking again will not help.
    #[error("invalid request")]
    Invalid(#[from] InvalidRequest),
    /// Nothing is wrong with the request: try again later. A write may or may not have happened.
    #[error("store unavailable")]
    Unavailable(#[from] Unavailable),
    /// What is stored is not what was written. Restore a backup.
    #[error("store corrupt: {what} in {place}")]
    Corrupt { what: String, place: String },
}

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    #[error("key is not provided")]
    EmptyKey,
    #[error("duplicate key given in txn request")]
    DuplicateKey,
    #[error("too many operations in txn request: {count}, at most {limit}")]
    TooManyOps { count: usize, limit: usize },
    #[error("request is too large: {bytes} bytes, at most {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// A put that keeps value or lease found no key to keep them from.
    #[error("key not found")]
    KeyNotFound,
    #[error("too large lease TTL")]
    LeaseTtlTooLarge,
}

/// Why a store cannot answer for now.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unavailable {
    /// Reads go on; writes are taken again by themselves once there is space.
    #[error("no space left on the disk of {place}: free some, writes go on by themselves")]
    DiskFull { place: String },
    /// Reads go on; writes are taken again by themselves once the disk is writable.
    #[error("the disk of {place} is read-only: mount it writable, writes go on by themselves")]
    ReadOnly { place: String },
    /// The disk refused a write or did not make it durable. Reads go on, later writes are tried on
    /// a new file.
    #[error("the disk of {place} failed: {reason}")]
    DiskFailed { place: String, reason: String },
    /// The store was closed, or its writer is gone.
    #[error("the store is closed")]
    Closed,
    /// etcd's database is as large as it may become: compact, defragment, disarm the alarm.
    #[error("etcd's database is over its quota: compact, defragment, then disarm the alarm")]
    OverQuota,
    /// etcd does not know us, or does not let us.
    #[error("etcd denies access: {reason}")]
    AccessDenied { reason: String },
    /// The server is not reached, has no leader, or did not answer in time.
    #[error("etcd does not answer: {reason}")]
    Unreachable { reason: String },
}

/// Why a compare-and-swap did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SwapError {
    /// The key is not as the caller saw it; `found` is what is there now, `None` if there is no
    /// such key.
    #[error("{}", conflict(.found.as_deref(), *.at))]
    Conflict {
        found: Option<Box<KeyValue>>,
        at: Revision,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn conflict(found: Option<&KeyValue>, at: Revision) -> String {
    match found {
        Some(kv) => format!("changed meanwhile, now at revision {}", kv.mod_revision),
        None => format!("no such key at revision {at}"),
    }
}
