//! Clock and random numbers: the machine's, and seeded simulated ones.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_client::World;
use coracle_store::embedded::Clock;
use tokio::time::Instant;

/// The machine's clock and random numbers.
pub const REAL: World = World {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the wall clock is handed in from"
    )]
    now: || Timestamp::from(std::time::SystemTime::now()),
    random: || RandomState::new().hash_one(0u8),
};

/// The start of simulated time.
pub(crate) const NOON: i64 = 1_772_366_400;

thread_local! {
    static SIMULATED: RefCell<Option<(fastrand::Rng, Instant)>> = const { RefCell::new(None) };
}

/// Simulated clock and random numbers of this thread: seeded, with the time of `tokio::time`.
pub fn simulated(seed: u64) -> World {
    SIMULATED.set(Some((fastrand::Rng::with_seed(seed), Instant::now())));
    World {
        now: simulated_now,
        random: simulated_random,
    }
}

fn simulated_now() -> Timestamp {
    let begun = SIMULATED.with_borrow(|rng| rng.as_ref().map(|(_, begun)| *begun));
    let elapsed = begun.map(|begun| begun.elapsed()).unwrap_or_default();
    Timestamp::from_unix(NOON, 0) + coracle_api::time::Duration::from(elapsed)
}

fn simulated_random() -> u64 {
    SIMULATED.with_borrow_mut(|rng| rng.as_mut().map(|(rng, _)| rng.u64(..)).unwrap_or_default())
}

/// The store's clock: `tokio::time`, real or paused.
pub(crate) struct StoreClock {
    begun: Instant,
    unix: Duration,
}

impl StoreClock {
    pub(crate) fn new() -> StoreClock {
        StoreClock {
            begun: Instant::now(),
            unix: Duration::from_secs(NOON.unsigned_abs()),
        }
    }
}

impl Clock for StoreClock {
    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn unix(&self) -> Duration {
        self.unix + self.elapsed()
    }
}
