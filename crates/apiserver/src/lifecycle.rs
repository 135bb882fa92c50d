//! The stages of a server's lifecycle.
//!
//! *Serving*; then *leaving*: requests are answered as before, but `/readyz` fails, so that load
//! balancers send no new clients; then *draining*: no connection is accepted, no short request
//! begins, watches end, and requests that have begun finish.

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

    /// Whether short requests may begin.
    pub fn accepts(&self) -> bool {
        self.stage() < Stage::Draining
    }
}
