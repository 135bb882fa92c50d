//! Rate limiters: how long a key waits after a failure.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_base::sync::Mutex;

use super::QueueKey;
use crate::limit::TokenBucket;

/// Decides how long a key waits before it is retried.
pub trait Limiter<K>: Send + Sync {
    /// Counts a failure of the key and returns how long it waits.
    fn when(&self, key: &K) -> Duration;
    /// Resets the failures of the key.
    fn forget(&self, key: &K);
    /// The number of consecutive failures.
    fn failures(&self, key: &K) -> u32;
}

/// The default of controllers.
pub(super) fn controllers<K: QueueKey>() -> MaxOf<K> {
    let each = ExponentialLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
    MaxOf(vec![
        Box::new(each),
        Box::new(BucketLimiter(TokenBucket::new(10.0, 100))),
    ])
}

/// Exponential backoff per key.
pub struct ExponentialLimiter<K> {
    base: Duration,
    longest: Duration,
    failures: Mutex<BTreeMap<K, u32>>,
}

impl<K> ExponentialLimiter<K> {
    /// `base`, twice that, four times that … up to `longest`.
    pub fn new(base: Duration, longest: Duration) -> ExponentialLimiter<K> {
        ExponentialLimiter {
            base,
            longest,
            failures: Mutex::new(BTreeMap::new()),
        }
    }
}

impl<K: QueueKey> Limiter<K> for ExponentialLimiter<K> {
    fn when(&self, key: &K) -> Duration {
        let mut failures = self.failures.lock();
        let count = failures.entry(key.clone()).or_default();
        let factor = 1_u32.checked_shl(*count).filter(|factor| *factor != 0);
        *count = count.saturating_add(1);
        factor
            .and_then(|factor| self.base.checked_mul(factor))
            .map_or(self.longest, |wait| wait.min(self.longest))
    }

    fn forget(&self, key: &K) {
        self.failures.lock().remove(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.lock().get(key).copied().unwrap_or_default()
    }
}

/// One token bucket for all keys.
pub struct BucketLimiter(pub TokenBucket);

impl<K: QueueKey> Limiter<K> for BucketLimiter {
    fn when(&self, _: &K) -> Duration {
        self.0.reserve()
    }

    fn forget(&self, _: &K) {}

    fn failures(&self, _: &K) -> u32 {
        0
    }
}

/// A short delay for the first attempts, then a long one.
pub struct FastSlowLimiter<K> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: Mutex<BTreeMap<K, u32>>,
}

impl<K> FastSlowLimiter<K> {
    /// `fast_attempts` times `fast`, then `slow`.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> FastSlowLimiter<K> {
        FastSlowLimiter {
            fast,
            slow,
            fast_attempts,
            failures: Mutex::new(BTreeMap::new()),
        }
    }
}

impl<K: QueueKey> Limiter<K> for FastSlowLimiter<K> {
    fn when(&self, key: &K) -> Duration {
        let mut failures = self.failures.lock();
        let count = failures.entry(key.clone()).or_default();
        *count = count.saturating_add(1);
        if *count <= self.fast_attempts {
            self.fast
        } else {
            self.slow
        }
    }

    fn forget(&self, key: &K) {
        self.failures.lock().remove(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.lock().get(key).copied().unwrap_or_default()
    }
}

/// The longest delay of several limiters. All are called, so that each counts every failure.
pub struct MaxOf<K>(pub Vec<Box<dyn Limiter<K>>>);

impl<K: QueueKey> Limiter<K> for MaxOf<K> {
    fn when(&self, key: &K) -> Duration {
        self.0
            .iter()
            .map(|limiter| limiter.when(key))
            .max()
            .unwrap_or_default()
    }

    fn forget(&self, key: &K) {
        self.0.iter().for_each(|limiter| limiter.forget(key));
    }

    fn failures(&self, key: &K) -> u32 {
        self.0
            .iter()
            .map(|limiter| limiter.failures(key))
            .max()
            .unwrap_or_default()
    }
}
