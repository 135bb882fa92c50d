//! Chance that can be had again: the seed is printed, and `CORACLE_SEED` gives it back.

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) struct Dice(u64);

impl Dice {
    /// Another one each time, unless a seed is given.
    #[expect(
        clippy::disallowed_methods,
        reason = "chance begins with the clock; the seed is printed"
    )]
    pub(crate) fn roll() -> Dice {
        let now = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_millis()
                % 1_000_000_007
        };
        let seed = number("CORACLE_SEED").unwrap_or_else(|| now().try_into().unwrap());
        eprintln!("CORACLE_SEED={seed}");
        Dice(seed)
    }

    pub(crate) fn of(seed: u64) -> Dice {
        Dice(seed)
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

/// A number that the person who runs the tests has set.
#[expect(
    clippy::disallowed_methods,
    reason = "this is how a person asks for another seed, or for more"
)]
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}
