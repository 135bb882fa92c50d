//! Connects informers to the queue of a controller.

use coracle_client::{Change, Informer, Projection};
use tokio::sync::oneshot;

/// The informers that a controller follows.
#[derive(Default)]
pub struct Feeds {
    caught_up: Vec<oneshot::Receiver<()>>,
}

impl Feeds {
    /// No informers yet.
    pub fn new() -> Feeds {
        Feeds::default()
    }

    /// Calls `handle` for every change that an informer reports. The handler only computes the keys
    /// concerned; it must not block, because all other listeners of the informer would wait for it.
    pub fn follow<T: Projection>(
        &mut self,
        informer: &Informer<T>,
        mut handle: impl FnMut(&Change<T>) + Send + 'static,
    ) {
        let (caught_up, is_caught_up) = oneshot::channel();
        let mut caught_up = Some(caught_up);
        self.caught_up.push(is_caught_up);
        informer.listen(move |change| match change {
            // The receiver may be gone.
            Change::Synced => drop(caught_up.take().map(|caught_up| caught_up.send(()))),
            change => handle(change),
        });
    }

    /// Resolves when all initial lists have been handled.
    pub async fn caught_up(self) {
        for caught_up in self.caught_up {
            if caught_up.await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
