//! The machine's clock and random numbers; components get them from here only.

use std::hash::{BuildHasher, RandomState};

use coracle_api::time::Timestamp;
use coracle_apiserver::World;

/// The clock and random numbers that components use.
pub(crate) const WORLD: World = World { now, random };

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the wall clock is handed in from"
)]
fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}

/// 64 random bits: the standard library seeds each state from the operating system.
fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}
