//! The clock and random source of a component, passed in so that a simulation can replace them.

use coracle_api::time::Timestamp;
use coracle_api::uid::Uid;

/// The wall clock and the random source. Everything else about time uses `tokio::time`.
#[derive(Clone, Copy)]
pub struct World {
    /// The wall clock.
    pub now: fn() -> Timestamp,
    /// 64 random bits.
    pub random: fn() -> u64,
}

impl World {
    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// A number from 0 up to, but not including, 1.
    pub fn fraction(&self) -> f64 {
        let share = u32::try_from((self.random)() >> 32).unwrap_or_default();
        f64::from(share) / (f64::from(u32::MAX) + 1.0)
    }

    /// A new UUID.
    pub fn uid(&self) -> Uid {
        let mut random = [0; 16];
        random[..8].copy_from_slice(&(self.random)().to_le_bytes());
        random[8..].copy_from_slice(&(self.random)().to_le_bytes());
        Uid::from_random(random)
    }
}
