//! Seeded random numbers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A random number generator; clones share its state.
#[derive(Clone)]
pub struct Rng(Arc<Mutex<fastrand::Rng>>);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// A number below `bound`; 0 where that is 0.
    pub fn below(&self, bound: usize) -> usize {
        if bound == 0 {
            0
        } else {
            self.0.lock().unwrap().usize(..bound)
        }
    }

    /// True with a probability of `share` percent.
    pub fn percent(&self, share: usize) -> bool {
        self.below(100) < share
    }

    /// A random element.
    pub fn pick<'a, T>(&self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// A duration up to `longest` milliseconds, mostly short.
    pub fn pause(&self, longest: usize) -> Duration {
        let bound = self.below(longest + 1);
        Duration::from_millis(u64::try_from(self.below(bound + 1)).unwrap())
    }
}
