//! Post-start hooks: whether each has finished, which the health checks report by name.

use std::sync::Arc;

use tokio::sync::watch;

/// One thing that begins with the server.
pub struct Hook {
    /// As upstream calls it; its health check is `poststarthook/NAME`.
    pub name: &'static str,
    done: Arc<watch::Sender<bool>>,
}

impl Hook {
    pub fn new(name: &'static str) -> Arc<Hook> {
        Arc::new(Hook {
            name,
            done: Arc::new(watch::Sender::new(false)),
        })
    }

    /// What upstream reports by another name, and is done here together with this one.
    pub fn also(&self, name: &'static str) -> Arc<Hook> {
        Arc::new(Hook {
            name,
            done: self.done.clone(),
        })
    }

    /// Its work has been done once; it may go on to keep it so.
    pub fn done(&self) {
        self.done
            .send_if_modified(|done| !std::mem::replace(done, true));
    }

    pub fn is_done(&self) -> bool {
        *self.done.borrow()
    }

    /// Resolves when its work has been done.
    pub async fn finished(&self) {
        // The sender lives as long as `self`.
        drop(self.done.subscribe().wait_for(|done| *done).await);
    }
}
