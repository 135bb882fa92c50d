//! What a controller has set in motion and not yet seen: until it has, what it sees is too old to
//! act on.
//!
//! Per owner so many objects are to appear, and these very ones to go. Whoever deletes says which,
//! so that the mark of deletion and the deletion itself count once. What is not seen within five
//! minutes is no longer waited for.
//!
//! Owners are told apart by UID, never by name: one that is deleted while its controller works
//! leaves expectations behind, and its successor of the same name would wait for pods that are not
//! its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coracle_api::Text;
use tokio::time::Instant;

/// After this long nothing is waited for any more.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(5 * 60);

/// From so many records on those that nobody waits for any more are looked for.
const MANY: usize = 1024;

/// The expectations of one controller, by the UID of what it controls.
pub struct Expectations {
    records: Mutex<Records>,
}

struct Records {
    by_owner: BTreeMap<Text, Record>,
    /// Records that nobody waits for any more are looked for when there are so many.
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

    fn is_given_up(&self) -> bool {
        self.set.elapsed() > GIVEN_UP_AFTER
    }
}

impl Default for Expectations {
    fn default() -> Expectations {
        Expectations::new()
    }
}

impl Expectations {
    /// Nothing is expected.
    pub fn new() -> Expectations {
        Expectations {
            records: Mutex::new(Records {
                by_owner: BTreeMap::new(),
                swept_at: MANY,
            }),
        }
    }

    /// So many objects are about to be created and these to be deleted. What was expected before is
    /// forgotten.
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

        // Owners that went while their controller worked for them are never forgotten by name.
        if records.by_owner.len() > records.swept_at {
            records.by_owner.retain(|_, record| !record.is_given_up());
            records.swept_at = MANY.max(records.by_owner.len() * 2);
        }
    }

    /// One has appeared.
    pub fn creation_observed(&self, owner: &str) {
        self.lower_creations(owner, 1);
    }

    /// So many will not appear: they have failed, or were not tried.
    pub fn lower_creations(&self, owner: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.change(owner, |record| {
            record.creations = record.creations.saturating_sub(count)
        });
    }

    /// This one is going, or gone, or could not be deleted.
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

    /// Whether everything has been seen, or is no longer waited for.
    pub fn satisfied(&self, owner: &str) -> bool {
        self.lock()
            .by_owner
            .get(owner)
            .is_none_or(|record| record.is_fulfilled() || record.is_given_up())
    }

    /// The objects whose deletion is waited for: whatever is still seen of them, they are going.
    pub fn going(&self, owner: &str) -> BTreeSet<Text> {
        let records = self.lock();
        let record = records
            .by_owner
            .get(owner)
            .filter(|record| !record.is_given_up());
        record
            .map(|record| record.deletions.clone())
            .unwrap_or_default()
    }

    /// The owner is gone.
    pub fn forget(&self, owner: &str) {
        self.lock().by_owner.remove(owner);
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [Text; 0] = [];
    const SET: Text = Text::const_new("set");

    #[tokio::test(start_paused = true)]
    async fn what_is_set_in_motion_is_waited_for_until_it_is_seen() {
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
        assert!(expectations.satisfied("set"), "none of them was tried");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_counts_once_however_often_it_is_seen() {
        let expectations = Expectations::new();
        expectations.expect(&SET, 0, ["a", "b"].map(Text::const_new));
        expectations.deletion_observed("set", "a");
        expectations.deletion_observed("set", "a");
        assert!(!expectations.satisfied("set"));
        assert_eq!(expectations.going("set"), ["b"].map(Text::const_new).into());
        expectations.deletion_observed("set", "b");
        assert!(expectations.satisfied("set"));
    }

    #[tokio::test(start_paused = true)]
    async fn after_five_minutes_nothing_is_waited_for() {
        let expectations = Expectations::new();
        expectations.expect(&SET, 1, NOTHING);
        tokio::time::advance(GIVEN_UP_AFTER).await;
        assert!(!expectations.satisfied("set"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(expectations.satisfied("set"));
        expectations.expect(&SET, 1, NOTHING);
        expectations.forget("set");
        assert!(expectations.satisfied("set"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_forgets_does_not_gather() {
        let expectations = Expectations::new();
        for round in 0..10 {
            for owner in 0..MANY {
                expectations.expect(&Text::new(format!("{round}-{owner}")), 1, NOTHING);
            }
            tokio::time::advance(GIVEN_UP_AFTER + Duration::from_secs(1)).await;
        }
        assert!(expectations.lock().by_owner.len() <= 3 * MANY);
    }
}
