//! How long a Job waits before it replaces failed pods. Pure.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_client::Cached;

use crate::views::Pod;

/// The delay after the first failure, in seconds; it doubles with each failure.
const SHORTEST: i64 = 10;
/// The longest delay, in seconds.
const LONGEST: i64 = 10 * 60;

/// How many pods have failed since the last success, and when the last of them did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// The number of failures.
    pub failures: usize,
    /// The last failure.
    pub last: Option<Timestamp>,
}

impl Backoff {
    /// The state after these pods have ended.
    #[must_use]
    pub fn after(self, succeeded: &[Arc<Cached<Pod>>], failed: &[Arc<Cached<Pod>>]) -> Backoff {
        let last_success = succeeded.iter().map(|pod| ended(pod)).max();
        let counted = failed
            .iter()
            .map(|pod| ended(pod))
            .filter(|at| last_success.is_none_or(|last| *at > last));
        let counted: Vec<Timestamp> = counted.collect();

        let before = if last_success.is_some() {
            Backoff::default()
        } else {
            self
        };

        Backoff {
            failures: before.failures + counted.len(),
            last: counted.into_iter().max().or(before.last),
        }
    }

    /// How long no pod may be created.
    pub fn remaining(&self, now: Timestamp) -> Option<Duration> {
        self.last.and_then(|last| pause(self.failures, last, now))
    }
}

/// When a pod ended.
pub fn ended(pod: &Pod) -> Timestamp {
    pod.end
        .as_ref()
        .map_or_else(|| pod.created.unwrap_or(Timestamp::ZERO), |end| end.at)
}

/// The remaining delay after this many failures.
pub fn pause(failures: usize, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let doublings = u32::try_from(failures.checked_sub(1)?).unwrap_or(u32::MAX);
    let seconds = SHORTEST
        .checked_shl(doublings)
        .filter(|seconds| doublings < 32 && *seconds < LONGEST);
    let until = last.plus_seconds(seconds.unwrap_or(LONGEST));
    until.since(now).to_std().filter(|left| !left.is_zero())
}
