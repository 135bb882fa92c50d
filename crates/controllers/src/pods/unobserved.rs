//! Creations and deletions of pods that have not been observed yet, by the UID of the owner.

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::time::Duration;

use coracle_api::Text;
use coracle_base::sync::Mutex;
use coracle_client::Expectations;
use coracle_client::expectations;

use crate::framework::{Creations, Requeue};

/// Shared by the handlers and by what acts on pods.
#[derive(Default)]
pub struct Unobserved {
    /// Creations and deletions that will be observed.
    pub expectations: Expectations,
    /// Creations with unknown outcome.
    pub creations: Creations,
    /// Deletions with unknown outcome, by owner: UID and name of each pod.
    uncertain: Mutex<BTreeMap<Text, BTreeMap<Text, Text>>>,
}

impl Unobserved {
    /// Forgets a deleted owner.
    pub fn forget(&self, owner: &str) {
        self.expectations.forget(owner);
        self.creations.forget(owner);
        self.uncertain().remove(owner);
    }

    /// Notes a deletion without a response. It stays expected, and has to be retried.
    pub(super) fn note_uncertain(&self, owner: &Text, uid: &Text, name: &Text) {
        self.uncertain()
            .entry(owner.clone())
            .or_default()
            .insert(uid.clone(), name.clone());
    }

    /// Takes the deletions to retry; each is returned once.
    pub(super) fn take_uncertain(&self, owner: &str) -> Vec<(Text, Text)> {
        self.uncertain()
            .remove(owner)
            .unwrap_or_default()
            .into_iter()
            .collect()
    }

    fn uncertain(&self) -> MutexGuard<'_, BTreeMap<Text, BTreeMap<Text, Text>>> {
        self.uncertain.lock()
    }
}

/// When to reconcile an owner again, given the time that its plan asks for. If an expectation is
/// not met, at the latest when it expires.
pub fn requeue_after(settled: bool, wake_after: Option<Duration>) -> Requeue {
    let waits = (!settled).then_some(expectations::TIMEOUT + Duration::from_secs(1));
    wake_after
        .into_iter()
        .chain(waits)
        .min()
        .map_or(Requeue::OnEvent, Requeue::After)
}
