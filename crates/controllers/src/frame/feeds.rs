//! What informers tell, heard by a controller.

use coracle_client::{Change, Informer, Projection, Tasks};
use tokio::sync::oneshot;

/// The informers that a controller listens to.
pub struct Feeds {
    tasks: Tasks,
    caught_up: Vec<oneshot::Receiver<()>>,
}

impl Feeds {
    /// None yet; each will be a task of `tasks`.
    pub fn new(tasks: Tasks) -> Feeds {
        Feeds { tasks, caught_up: Vec::new() }
    }

    /// Hears everything that an informer tells. Who hears only works out which keys are concerned: it does not wait.
    pub fn follow<T: Projection>(
        &mut self,
        informer: &Informer<T>,
        mut hear: impl FnMut(Change<T>) + Send + 'static,
    ) {
        let mut subscription = informer.subscribe();
        let (caught_up, is_caught_up) = oneshot::channel();
        let mut caught_up = Some(caught_up);
        self.caught_up.push(is_caught_up);
        self.tasks.spawn(async move {
            loop {
                match subscription.next().await {
                    // Nobody may be waiting any more.
                    Change::Synced => drop(caught_up.take().map(|caught_up| caught_up.send(()))),
                    change => hear(change),
                }
            }
        });
    }

    /// Resolves when everything that there was at the beginning has been heard.
    pub async fn caught_up(self) {
        for caught_up in self.caught_up {
            if caught_up.await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
