//! The stages of a server's life, and the requests that are under way.
//!
//! *Serving*; then *leaving*: everything is answered as before, but `/readyz` says no, so that
//! nobody new is sent here; then *draining*: no connection is accepted, no short request begins,
//! watches end, and those that have begun finish.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    #[default]
    Serving,
    Leaving,
    Draining,
}

#[derive(Default)]
pub struct Lifecycle {
    stage: watch::Sender<Stage>,
    under_way: AtomicUsize,
}

impl Lifecycle {
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    pub fn enter(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// Follows the stages.
    pub fn subscribe(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Resolves when the server begins to drain.
    pub async fn draining(&self) {
        // The sender lives as long as `self`.
        drop(
            self.stage
                .subscribe()
                .wait_for(|stage| *stage >= Stage::Draining)
                .await,
        );
    }

    /// Begins a short request; `None`: too late.
    pub fn begin(&self) -> Option<UnderWay<'_>> {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        let begun = UnderWay { lifecycle: self };
        (self.stage() < Stage::Draining).then_some(begun)
    }

    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }
}

/// A short request that has begun; it ends when this is dropped.
pub struct UnderWay<'a> {
    lifecycle: &'a Lifecycle,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.lifecycle.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}
