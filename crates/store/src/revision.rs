//! The revision: the logical clock of a store.

use std::fmt;

/// The number of a write transaction. Every transaction that changes a key raises the store's
/// revision by one, and all keys it changes carry the new one. A fresh store is at
/// [`Revision::FIRST`].
///
/// A revision belongs to one store: comparing those of two stores means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// Before every revision. As a key's create or mod revision in a comparison: the key does not
    /// exist.
    pub const ZERO: Revision = Revision(0);
    /// The revision of a store without any write.
    pub const FIRST: Revision = Revision(1);

    pub const fn new(number: u64) -> Self {
        Revision(number)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn next(self) -> Self {
        Revision(self.0 + 1)
    }

    /// The revision before this one; [`Revision::ZERO`] has none before it.
    #[must_use]
    pub const fn previous(self) -> Self {
        Revision(self.0.saturating_sub(1))
    }

    /// From etcd's wire format, in which a negative number is not a revision.
    pub fn from_wire(number: i64) -> Option<Self> {
        u64::try_from(number).ok().map(Revision)
    }

    pub fn to_wire(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
