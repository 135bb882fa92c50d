//! Leases: keys that are deleted together when the lease expires.

use bytes::Bytes;
use std::{fmt, num::NonZeroI64, time::Duration};

/// The id of a lease. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(NonZeroI64);

/// The state of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    pub id: LeaseId,
    /// The granted time to live.
    pub granted: Duration,
    /// The remaining time to live.
    pub remaining: Duration,
    /// The keys attached to it, in byte order.
    pub keys: Vec<Bytes>,
}

impl LeaseId {
    /// `None` for zero, which is how etcd's API says "no lease".
    pub fn from_wire(id: i64) -> Option<Self> {
        NonZeroI64::new(id).map(LeaseId)
    }

    pub fn to_wire(self) -> i64 {
        self.0.get()
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
