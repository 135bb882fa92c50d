//! A token bucket: a rate and a burst.

use std::time::Duration;

use coracle_base::sync::Mutex;
use tokio::time::Instant;

/// Issues tokens at a rate; `reserve` returns how long to wait for one.
pub struct TokenBucket {
    per_second: f64,
    burst: f64,
    state: Mutex<(f64, Instant)>,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(per_second: f64, burst: u32) -> TokenBucket {
        let burst = f64::from(burst);
        TokenBucket {
            per_second,
            burst,
            state: Mutex::new((burst, Instant::now())),
        }
    }

    /// Reserves a token and returns how long to wait before it may be used.
    pub fn reserve(&self) -> Duration {
        let mut state = self.state.lock();
        let now = Instant::now();
        let (tokens, last) = *state;
        let gained = now.duration_since(last).as_secs_f64() * self.per_second;
        let left = (tokens + gained).min(self.burst) - 1.0;
        *state = (left, now);
        if left >= 0.0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(-left / self.per_second)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_immediately_and_the_rest_at_the_rate() {
        let bucket = TokenBucket::new(10.0, 2);
        let waits: Vec<u128> = (0..4).map(|_| bucket.reserve().as_millis()).collect();
        assert_eq!(waits, [0, 0, 100, 200]);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(bucket.reserve(), Duration::ZERO);
    }
}
