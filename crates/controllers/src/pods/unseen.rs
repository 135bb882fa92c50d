//! What was set in motion for owners of pods and has not been seen yet, by the owners' UIDs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coracle_api::Text;
use coracle_client::Expectations;
use coracle_client::expectations::GIVEN_UP_AFTER;

use crate::frame::{Attempts, Requeue};

/// Shared by what hears of pods and what acts on them.
#[derive(Default)]
pub struct Unseen {
    /// Creations and deletions that will be heard of.
    pub expectations: Expectations,
    /// Creations of which nobody knows whether they took place.
    pub attempts: Attempts,
    /// Deletions of which nobody knows that, by owner: pods by their UIDs, with their names.
    uncertain: Mutex<BTreeMap<Text, BTreeMap<Text, Text>>>,
}

impl Unseen {
    /// The owner is gone.
    pub fn forget(&self, owner: &str) {
        self.expectations.forget(owner);
        self.attempts.forget(owner);
        self.uncertain().remove(owner);
    }

    /// A pod was told to go, and no answer came. It stays expected to go, and has to be told so
    /// again.
    pub(super) fn note_uncertain(&self, owner: &Text, uid: &Text, name: &Text) {
        self.uncertain()
            .entry(owner.clone())
            .or_default()
            .insert(uid.clone(), name.clone());
    }

    /// The pods that have to be told again, each answered once.
    pub(super) fn take_uncertain(&self, owner: &str) -> Vec<(Text, Text)> {
        self.uncertain()
            .remove(owner)
            .unwrap_or_default()
            .into_iter()
            .collect()
    }

    fn uncertain(&self) -> MutexGuard<'_, BTreeMap<Text, BTreeMap<Text, Text>>> {
        self.uncertain
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// When to look again at an owner that is to be looked at after some time anyway, or not. Where
/// something is waited for that may never be seen, it is looked at when the waiting ends.
pub fn look_again(settled: bool, wake_after: Option<Duration>) -> Requeue {
    let waits = (!settled).then_some(GIVEN_UP_AFTER + Duration::from_secs(1));
    wake_after
        .into_iter()
        .chain(waits)
        .min()
        .map_or(Requeue::OnEvent, Requeue::After)
}
