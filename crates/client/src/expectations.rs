//! What a controller has set in motion and not yet seen: until it has, what it sees is too old to act on.
//!
//! Per key so many objects are to appear, and these very ones to go. Whoever deletes says which, so that the mark of
//! deletion and the deletion itself count once. What is not seen within five minutes is no longer waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coracle_api::Text;
use tokio::time::Instant;

/// After this long nothing is waited for any more.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(5 * 60);

/// The expectations of one controller, by what it controls: by UID, where another of the same name may follow.
pub struct Expectations<K> {
    records: Mutex<BTreeMap<K, Record>>,
}

struct Record {
    creations: i64,
    deletions: BTreeSet<Text>,
    set: Instant,
}

impl<K: Ord + Clone> Default for Expectations<K> {
    fn default() -> Expectations<K> {
        Expectations::new()
    }
}

impl<K: Ord + Clone> Expectations<K> {
    /// Nothing is expected.
    pub fn new() -> Expectations<K> {
        Expectations { records: Mutex::new(BTreeMap::new()) }
    }

    /// So many objects are about to be created. What was expected before is forgotten.
    pub fn expect_creations(&self, key: &K, count: usize) {
        let creations = i64::try_from(count).unwrap_or(i64::MAX);
        self.set(key, creations, BTreeSet::new());
    }

    /// So many objects are about to be created and these to be deleted. What was expected before is forgotten.
    pub fn expect(&self, key: &K, creations: usize, deletions: impl IntoIterator<Item = Text>) {
        let creations = i64::try_from(creations).unwrap_or(i64::MAX);
        self.set(key, creations, deletions.into_iter().collect());
    }

    /// These objects are about to be deleted. What was expected before is forgotten.
    pub fn expect_deletions(&self, key: &K, uids: impl IntoIterator<Item = Text>) {
        self.set(key, 0, uids.into_iter().collect());
    }

    fn set(&self, key: &K, creations: i64, deletions: BTreeSet<Text>) {
        self.lock().insert(key.clone(), Record { creations, deletions, set: Instant::now() });
    }

    /// One has appeared.
    pub fn creation_observed(&self, key: &K) {
        self.lower_creations(key, 1);
    }

    /// So many will not appear: they have failed, or were not tried.
    pub fn lower_creations(&self, key: &K, count: usize) {
        if let Some(record) = self.lock().get_mut(key) {
            record.creations = record.creations.saturating_sub(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// This one is going, or gone, or could not be deleted.
    pub fn deletion_observed(&self, key: &K, uid: &str) {
        if let Some(record) = self.lock().get_mut(key) {
            record.deletions.remove(uid);
        }
    }

    /// Whether everything has been seen, or is no longer waited for.
    pub fn satisfied(&self, key: &K) -> bool {
        self.lock().get(key).is_none_or(|record| {
            (record.creations <= 0 && record.deletions.is_empty()) || record.set.elapsed() > GIVEN_UP_AFTER
        })
    }

    /// What is controlled is gone: one of the same name starts clean.
    pub fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_set_in_motion_is_waited_for_until_it_is_seen() {
        let expectations = Expectations::new();
        assert!(expectations.satisfied(&"job"), "nothing was ever expected");
        expectations.expect_creations(&"job", 2);
        assert!(!expectations.satisfied(&"job"));
        expectations.creation_observed(&"job");
        assert!(!expectations.satisfied(&"job"));
        expectations.creation_observed(&"job");
        assert!(expectations.satisfied(&"job"));
        expectations.expect_creations(&"job", 4);
        expectations.lower_creations(&"job", 4);
        assert!(expectations.satisfied(&"job"), "none of them was tried");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_counts_once_however_often_it_is_seen() {
        let expectations = Expectations::new();
        expectations.expect_deletions(&"set", ["a", "b"].map(Text::const_new));
        expectations.deletion_observed(&"set", "a");
        expectations.deletion_observed(&"set", "a");
        assert!(!expectations.satisfied(&"set"));
        expectations.deletion_observed(&"set", "b");
        assert!(expectations.satisfied(&"set"));
    }

    #[tokio::test(start_paused = true)]
    async fn after_five_minutes_nothing_is_waited_for() {
        let expectations = Expectations::new();
        expectations.expect_creations(&"set", 1);
        tokio::time::advance(GIVEN_UP_AFTER).await;
        assert!(!expectations.satisfied(&"set"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(expectations.satisfied(&"set"));
        expectations.expect_creations(&"set", 1);
        expectations.forget(&"set");
        assert!(expectations.satisfied(&"set"));
    }
}
