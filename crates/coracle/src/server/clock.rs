//! The machine's clock and dice: the only place where rooms get them from.

use std::hash::{BuildHasher, RandomState};

use coracle_api::time::Timestamp;

#[expect(clippy::disallowed_methods, reason = "this is where the wall clock is handed in from")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}

pub(crate) fn unix_seconds() -> u64 {
    u64::try_from(now().unix_seconds()).unwrap_or_default()
}

/// 64 random bits: the standard library seeds each state from the operating system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}
