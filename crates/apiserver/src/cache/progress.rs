//! The revision that the caches have applied, and waiting for a later one.
//!
//! Each waiter is woken once, when its revision is reached, in the order of revisions and then of
//! arrival: a simulation of the server is deterministic.

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use coracle_base::sync::Mutex;
use coracle_store::Revision;
use tokio::sync::oneshot;

#[derive(Default)]
pub(super) struct Progress {
    at: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// By revision, then by how many had come before.
    by_revision: BTreeMap<(Revision, u64), oneshot::Sender<()>>,
    came: u64,
}

impl Progress {
    pub(super) fn get(&self) -> Revision {
        Revision::new(self.at.load(Ordering::Acquire))
    }

    pub(super) fn set(&self, revision: Revision) {
        self.at.store(revision.get(), Ordering::Release);
        let mut waiting = self.waiting();
        while let Some(first) = waiting.by_revision.first_entry()
            && first.key().0 <= revision
        {
            // A waiter that was dropped is ignored.
            first.remove().send(()).ok();
        }
    }

    /// Resolves when everything up to `revision` is there.
    pub(super) async fn reached(&self, revision: Revision) {
        while self.get() < revision {
            let Some(there) = self.wait_for(revision) else {
                return;
            };
            // The channel closes without a value only when the caches are dropped.
            drop(there.await);
        }
    }

    /// Registers a waiter, unless the revision has been reached meanwhile.
    fn wait_for(&self, revision: Revision) -> Option<oneshot::Receiver<()>> {
        let mut waiting = self.waiting();
        // Checked again under the lock: later changes find the waiter.
        if self.get() >= revision {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        waiting.came += 1;
        let place = (revision, waiting.came);
        waiting.by_revision.insert(place, sender);
        Some(receiver)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_waiter_is_woken_when_its_revision_is_reached_and_not_before() {
        let progress = Progress::default();
        progress.set(Revision::new(3));
        assert!(progress.reached(Revision::new(3)).now_or_never().is_some());

        let (mut near, mut far) = (
            pin!(progress.reached(Revision::new(4))),
            pin!(progress.reached(Revision::new(9))),
        );
        assert!((&mut far).now_or_never().is_none());

        assert!((&mut near).now_or_never().is_none());

        progress.set(Revision::new(4));
        assert_eq!(progress.waiting().by_revision.len(), 1);
        assert!((&mut near).now_or_never().is_some());
        assert!((&mut far).now_or_never().is_none());

        progress.set(Revision::new(10));
        assert!(far.now_or_never().is_some());
        assert!(progress.waiting().by_revision.is_empty());
    }
}
