//! Store errors.

use crate::{KeyValue, LeaseId, Revision};

/// Why a request failed. Each variant is something a caller does differently.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// List again, then watch from there.
    #[error("required revision {requested} has been compacted, the oldest kept is {compacted}")]
    Compacted {
        requested: Revision,
        compacted: Revision,
    },
    /// Wait for the revision, or check that this is the right store.
    #[error("required revision {requested} is a future revision, the store is at {current}")]
    FutureRevision {
        requested: Revision,
        current: Revision,
    },
    #[error("lease {0} not found")]
    LeaseNotFound(LeaseId),
    #[error("lease {0} already exists")]
    LeaseExists(LeaseId),
    /// The request is invalid; a retry will not help.
    #[error("invalid request")]
    Invalid(#[from] InvalidRequest),
    /// The request is valid: retry later. A write may or may not have happened.
    #[error("store unavailable")]
    Unavailable(#[from] Unavailable),
    /// Stored data is damaged. Restore a backup.
    #[error("store corrupt: {what} in {location}")]
    Corrupt { what: String, location: String },
}

/// Why a request is invalid.
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
    /// A put that keeps the value or lease of a key that does not exist.
    #[error("key not found")]
    KeyNotFound,
    #[error("too large lease TTL")]
    LeaseTtlTooLarge,
}

/// Why a store is temporarily unavailable.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unavailable {
    /// Reads continue; writes resume once there is space.
    #[error(
        "no space left on the disk of {path}: free space, then writes resume without a restart"
    )]
    DiskFull { path: String },
    /// Reads continue; writes resume once the disk is writable.
    #[error(
        "the disk of {path} is read-only: remount it read-write, then writes resume without a restart"
    )]
    ReadOnly { path: String },
    /// A write or sync failed. Reads continue, later writes go to a new file.
    #[error("the disk of {path} failed: {reason}")]
    DiskFailed { path: String, reason: String },
    /// The store was closed, or its writer ended.
    #[error("the store is closed")]
    Closed,
    /// etcd's database has reached its quota: compact, defragment, disarm the alarm.
    #[error("etcd's database is over its quota: compact, defragment, then disarm the alarm")]
    OverQuota,
    /// etcd rejected our credentials or denied the operation.
    #[error("etcd denied access: {reason}")]
    AccessDenied { reason: String },
    /// The server cannot be reached, has no leader, or did not answer in time.
    #[error("etcd is not available: {reason}")]
    Unreachable { reason: String },
}

/// Why a compare-and-swap did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SwapError {
    /// The key differs from what the caller saw; `found` is its current state, `None` if it does
    /// not exist.
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
