//! How long a Job waits before it replaces pods that fail. Pure.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_client::Cached;

use crate::views::Pod;

/// The pause after the first failure, in seconds; each that follows is twice as long.
const SHORTEST: i64 = 10;
/// Never longer, in seconds.
const LONGEST: i64 = 10 * 60;

/// How many pods have failed since the last that succeeded, and when the last of them did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// So many.
    pub failures: usize,
    /// The last.
    pub last: Option<Timestamp>,
}

impl Backoff {
    /// What it is after these pods have ended.
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

    /// How long no pod is made yet.
    pub fn remaining(&self, now: Timestamp) -> Option<Duration> {
        self.last.and_then(|last| pause(self.failures, last, now))
    }
}

/// When a pod came to its end.
pub fn ended(pod: &Pod) -> Timestamp {
    pod.end
        .as_ref()
        .map_or_else(|| pod.created.unwrap_or(Timestamp::ZERO), |end| end.at)
}

/// How long is left of the pause after so many failures.
pub fn pause(failures: usize, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let doublings = u32::try_from(failures.checked_sub(1)?).unwrap_or(u32::MAX);
    let seconds = SHORTEST
        .checked_shl(doublings)
        .filter(|seconds| doublings < 32 && *seconds < LONGEST);
    let until = last.plus_seconds(seconds.unwrap_or(LONGEST));
    until.since(now).to_std().filter(|left| !left.is_zero())
}
