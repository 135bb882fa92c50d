//! How far the caches have come, and those who wait until they are further.
//!
//! They are woken in the order in which they began to wait: a simulation of the server is the same every time.

use std::sync::atomic::{AtomicU64, Ordering};

use coracle_store::Revision;
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Progress {
    at: AtomicU64,
    moved: Notify,
}

impl Progress {
    pub(super) fn get(&self) -> Revision {
        Revision::new(self.at.load(Ordering::Acquire))
    }

    pub(super) fn set(&self, revision: Revision) {
        self.at.store(revision.get(), Ordering::Release);
        self.moved.notify_waiters();
    }

    /// Resolves when everything up to `revision` is there.
    pub(super) async fn reached(&self, revision: Revision) {
        loop {
            // Asked for before it is looked at, so that nothing in between is missed.
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.get() >= revision {
                return;
            }
            moved.await;
        }
    }
}
