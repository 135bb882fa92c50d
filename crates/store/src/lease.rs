//! Leases: keys that go away together when nobody keeps them alive.

use bytes::Bytes;
use std::{fmt, num::NonZeroI64, time::Duration};

/// The name of a lease. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(NonZeroI64);

/// A lease as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    pub id: LeaseId,
    /// The time to live it was granted with.
    pub granted: Duration,
    /// How long it still lives unless it is kept alive.
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
