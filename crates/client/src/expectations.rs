//! Expectations: the creations and deletions that a controller has requested and not yet observed.
//! Until it has observed them, its view is too old to act on.
//!
//! Per owner, a number of creations and a set of deletions are expected. Deletions are identified
//! by UID, so that the deletion timestamp and the deletion itself count once. What is not observed
//! within five minutes expires.
//!
//! Owners are identified by UID, never by name: the expectations of a deleted owner may remain, and
//! its successor of the same name would wait for pods that are not its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::time::Duration;

use coracle_api::Text;
use coracle_base::sync::Mutex;
use tokio::time::Instant;

/// Expectations expire after this time.
pub const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// From this number of records on, expired ones are removed.
const SWEEP_THRESHOLD: usize = 1024;

/// The expectations of one controller, by the UID of the owner.
pub struct Expectations {
    records: Mutex<Records>,
}

struct Records {
    by_owner: BTreeMap<Text, Record>,
    /// The number of records at which expired ones are removed.
    swept_at: usize,
}

struct Record {
    creations: i64,
    deletions: BTreeSet<Text>,
    set: Instant,
}

impl Record {
    fn is_fulfilled(&self) -> bool {
        self.creations <= 0 && self.deletions.is_empty()
    }

    fn is_expired(&self) -> bool {
        self.set.elapsed() > TIMEOUT
    }
}

impl Default for Expectations {
    fn default() -> Expectations {
        Expectations::new()
    }
}

impl Expectations {
    /// No expectations.
    pub fn new() -> Expectations {
        Expectations {
            records: Mutex::new(Records {
                by_owner: BTreeMap::new(),
                swept_at: SWEEP_THRESHOLD,
            }),
        }
    }

    /// Expects `creations` creations and the deletion of these objects, replacing earlier
    /// expectations.
    pub fn expect(
        &self,
        owner: &Text,
        creations: usize,
        deletions: impl IntoIterator<Item = Text>,
    ) {
        let creations = i64::try_from(creations).unwrap_or(i64::MAX);
        let record = Record {
            creations,
            deletions: deletions.into_iter().collect(),
            set: Instant::now(),
        };

        let mut records = self.lock();
        records.by_owner.insert(owner.clone(), record);

        // `forget` is not called for owners that are deleted while their controller works on them.
        if records.by_owner.len() > records.swept_at {
            records.by_owner.retain(|_, record| !record.is_expired());
            records.swept_at = SWEEP_THRESHOLD.max(records.by_owner.len() * 2);
        }
    }

    /// A creation was observed.
    pub fn creation_observed(&self, owner: &str) {
        self.lower_creations(owner, 1);
    }

    /// This many creations will not happen: they failed or were not attempted.
    pub fn lower_creations(&self, owner: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.change(owner, |record| {
            record.creations = record.creations.saturating_sub(count)
        });
    }

    /// A deletion was observed, or failed.
    pub fn deletion_observed(&self, owner: &str, uid: &str) {
        self.change(owner, |record| {
            record.deletions.retain(|waited| waited != uid)
        });
    }

    fn change(&self, owner: &str, change: impl FnOnce(&mut Record)) {
        let mut records = self.lock();
        let Some(record) = records.by_owner.get_mut(owner) else {
            return;
        };
        change(record);
        if record.is_fulfilled() {
            records.by_owner.remove(owner);
        }
    }

    /// Whether everything was observed or has expired.
    pub fn satisfied(&self, owner: &str) -> bool {
        self.lock()
            .by_owner
            .get(owner)
            .is_none_or(|record| record.is_fulfilled() || record.is_expired())
    }

    /// The objects whose deletion is expected: they are being deleted even if they are still
    /// observed.
    pub fn pending_deletions(&self, owner: &str) -> BTreeSet<Text> {
        let records = self.lock();
        let record = records
            .by_owner
            .get(owner)
            .filter(|record| !record.is_expired());
        record
            .map(|record| record.deletions.clone())
            .unwrap_or_default()
    }

    /// The owner was deleted.
    pub fn forget(&self, owner: &str) {
        self.lock().by_owner.remove(owner);
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [Text; 0] = [];
    const SET: Text = Text::const_new("set");

    #[tokio::test(start_paused = true)]
    async fn expectations_are_satisfied_once_everything_is_observed() {
        let expectations = Expectations::new();
        assert!(expectations.satisfied("set"), "nothing was ever expected");
        expectations.expect(&SET, 2, NOTHING);
        assert!(!expectations.satisfied("set"));
        expectations.creation_observed("set");
        assert!(!expectations.satisfied("set"));
        expectations.creation_observed("set");
        assert!(expectations.satisfied("set"));
        expectations.expect(&SET, 4, NOTHING);
        expectations.lower_creations("set", 4);
        assert!(expectations.satisfied("set"), "none of them was attempted");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_counts_once_however_often_it_is_observed() {
        let expectations = Expectations::new();
        expectations.expect(&SET, 0, ["a", "b"].map(Text::const_new));
        expectations.deletion_observed("set", "a");
        expectations.deletion_observed("set", "a");
        assert!(!expectations.satisfied("set"));
        assert_eq!(
            expectations.pending_deletions("set"),
            ["b"].map(Text::const_new).into()
        );
        expectations.deletion_observed("set", "b");
        assert!(expectations.satisfied("set"));
    }

    #[tokio::test(start_paused = true)]
    async fn expectations_expire_after_five_minutes() {
        let expectations = Expectations::new();
        expectations.expect(&SET, 1, NOTHING);
        tokio::time::advance(TIMEOUT).await;
        assert!(!expectations.satisfied("set"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(expectations.satisfied("set"));
        expectations.expect(&SET, 1, NOTHING);
        expectations.forget("set");
        assert!(expectations.satisfied("set"));
    }

    #[tokio::test(start_paused = true)]
    async fn expired_records_are_removed() {
        let expectations = Expectations::new();
        for round in 0..10 {
            for owner in 0..SWEEP_THRESHOLD {
                expectations.expect(&Text::new(format!("{round}-{owner}")), 1, NOTHING);
            }
            tokio::time::advance(TIMEOUT + Duration::from_secs(1)).await;
        }
        assert!(expectations.lock().by_owner.len() <= 3 * SWEEP_THRESHOLD);
    }
}
