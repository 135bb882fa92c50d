//! Back-off of failing containers and image pulls: 10 s, 20 s, … 5 min.
//!
//! One table for restarts and one for pulls; the key says what failed. The first attempt does not
//! wait. An entry unused for twice the longest delay has expired.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use coracle_api::time::{Duration, Timestamp};
use coracle_base::sync::Mutex;

const INITIAL: Duration = Duration::from_secs(10);
const MAX: Duration = Duration::from_secs(300);

/// Current delays by key.
#[derive(Default)]
pub struct BackOff {
    waiting: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    wait: Duration,
    updated: Timestamp,
}

/// A delay that has not passed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The whole delay.
    pub wait: Duration,
    pub until: Timestamp,
}

impl BackOff {
    /// Whether a key that failed at `since` must wait now, and until when.
    pub fn waiting(&self, key: &str, since: Timestamp, now: Timestamp) -> Option<Waiting> {
        let entry = *self.lock().get(key)?;
        let until = since + entry.wait;
        (!entry.is_stale(since) && now < until).then_some(Waiting {
            wait: entry.wait,
            until,
        })
    }

    /// Whether a key must wait now, counted from its last [`note`](BackOff::note), and until when.
    pub fn waiting_since_noted(&self, key: &str, now: Timestamp) -> Option<Waiting> {
        let entry = *self.lock().get(key)?;
        let until = entry.updated + entry.wait;
        (!entry.is_stale(now) && now < until).then_some(Waiting {
            wait: entry.wait,
            until,
        })
    }

    /// Records another attempt of what failed at `since`: the next delay doubles.
    pub fn note(&self, key: &str, since: Timestamp, now: Timestamp) {
        let mut waiting = self.lock();
        let wait = match waiting.get(key) {
            Some(entry) if !entry.is_stale(since) => {
                Duration::from_nanos(entry.wait.as_nanos().saturating_mul(2)).min(MAX)
            }
            _ => INITIAL,
        };
        waiting.insert(key.to_owned(), Entry { wait, updated: now });
    }

    /// Removes all keys with this prefix, when a pod is deleted.
    pub fn forget(&self, prefix: &str) {
        self.lock().retain(|key, _| !key.starts_with(prefix));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.waiting.lock()
    }
}

impl Entry {
    fn is_stale(self, at: Timestamp) -> bool {
        at.since(self.updated).as_nanos() > 2 * MAX.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(1_000_000 + seconds, 0)
    }

    #[test]
    fn the_first_restart_is_at_once_and_the_next_ones_wait_longer_and_longer() {
        let table = BackOff::default();
        let mut failed = 0;

        let mut waits = Vec::new();
        for _ in 0..8 {
            let until = table
                .waiting("c", at(failed), at(failed))
                .map_or(at(failed), |waiting| waiting.until);
            waits.push(until.since(at(failed)).as_secs());
            table.note("c", at(failed), until);
            // It fails a second after it began.
            failed = until.since(at(0)).as_secs() + 1;
        }

        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn the_delay_is_reset_after_a_long_run() {
        let table = BackOff::default();
        table.note("c", at(0), at(0));
        table.note("c", at(1), at(10));
        // 601 seconds after the entry was updated.
        assert_eq!(table.waiting("c", at(611), at(611)), None);
        table.note("c", at(611), at(611));
        assert_eq!(
            table.waiting("c", at(612), at(612)).unwrap().wait,
            Duration::from_secs(10)
        );
    }

    #[test]
    fn a_wait_counts_from_the_end_of_the_container() {
        let table = BackOff::default();
        table.note("c", at(0), at(0));
        assert!(table.waiting("c", at(5), at(14)).is_some());
        assert!(table.waiting("c", at(5), at(15)).is_none());
        // A pull's wait counts from the attempt.
        assert!(table.waiting_since_noted("c", at(9)).is_some());
        assert!(table.waiting_since_noted("c", at(10)).is_none());
        assert!(table.waiting("d", at(5), at(5)).is_none());
    }

    #[test]
    fn entries_of_a_deleted_pod_are_removed() {
        let table = BackOff::default();
        table.note("uid1/a", at(0), at(0));
        table.note("uid2/a", at(0), at(0));
        table.forget("uid1/");
        assert!(table.waiting("uid1/a", at(0), at(0)).is_none());
        assert!(table.waiting("uid2/a", at(0), at(0)).is_some());
    }
}
