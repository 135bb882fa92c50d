//! Clocks and dice: the machine's, and simulated ones that a seed decides.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_client::World;
use coracle_store::embedded::Clock;
use tokio::time::Instant;

/// What the machine says.
pub const REAL: World = World {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the wall clock is handed in from"
    )]
    now: || Timestamp::from(std::time::SystemTime::now()),
    random: || RandomState::new().hash_one(0u8),
};

/// When simulated time begins: noon of some day.
pub(crate) const NOON: i64 = 1_772_366_400;

thread_local! {
    static DICE: RefCell<Option<(fastrand::Rng, Instant)>> = const { RefCell::new(None) };
}

/// The world of this thread from now on: chance as the seed has it, time as `tokio::time` has it.
pub fn simulated(seed: u64) -> World {
    DICE.set(Some((fastrand::Rng::with_seed(seed), Instant::now())));
    World {
        now: simulated_now,
        random: simulated_random,
    }
}

fn simulated_now() -> Timestamp {
    let begun = DICE.with_borrow(|dice| dice.as_ref().map(|(_, begun)| *begun));
    let elapsed = begun.map(|begun| begun.elapsed()).unwrap_or_default();
    Timestamp::from_unix(NOON, 0) + coracle_api::time::Duration::from(elapsed)
}

fn simulated_random() -> u64 {
    DICE.with_borrow_mut(|dice| {
        dice.as_mut()
            .map(|(rng, _)| rng.u64(..))
            .unwrap_or_default()
    })
}

/// The store's clock: `tokio::time`, whoever moves that.
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
