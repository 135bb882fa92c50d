//! Reproducible random numbers: the seed is printed, and `CORACLE_SEED` sets it.

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) struct Rng(u64);

impl Rng {
    /// Seeded by the clock, unless `CORACLE_SEED` is set.
    #[expect(
        clippy::disallowed_methods,
        reason = "the seed is taken from the clock, and printed"
    )]
    pub(crate) fn from_entropy_or_env() -> Rng {
        let now = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_millis()
                % 1_000_000_007
        };
        let seed = number("CORACLE_SEED").unwrap_or_else(|| now().try_into().unwrap());
        eprintln!("CORACLE_SEED={seed}");
        Rng(seed)
    }

    pub(crate) fn with_seed(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number of SplitMix64.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }
}

/// A number in an environment variable.
#[expect(
    clippy::disallowed_methods,
    reason = "seeds and durations of a run are set by environment variables"
)]
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}
