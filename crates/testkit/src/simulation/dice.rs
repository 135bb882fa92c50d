//! Chance, as a seed decides it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Dice. Clones throw the same ones.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<fastrand::Rng>>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// A number below `bound`; 0 where that is 0.
    pub fn below(&self, bound: usize) -> usize {
        if bound == 0 {
            0
        } else {
            self.0.lock().unwrap().usize(..bound)
        }
    }

    /// Whether something happens that does in so many of a hundred cases.
    pub fn percent(&self, share: usize) -> bool {
        self.below(100) < share
    }

    /// One of several.
    pub fn pick<'a, T>(&self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// A time up to `longest` milliseconds: mostly short.
    pub fn pause(&self, longest: usize) -> Duration {
        let bound = self.below(longest + 1);
        Duration::from_millis(u64::try_from(self.below(bound + 1)).unwrap())
    }
}
