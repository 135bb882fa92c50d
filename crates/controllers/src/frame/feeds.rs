//! What informers tell, heard by a controller.

use coracle_client::{Change, Informer, Projection};
use tokio::sync::oneshot;

/// The informers that a controller listens to.
#[derive(Default)]
pub struct Feeds {
    caught_up: Vec<oneshot::Receiver<()>>,
}

impl Feeds {
    /// None yet.
    pub fn new() -> Feeds {
        Feeds::default()
    }

    /// Hears everything that an informer tells. Who hears only works out which keys are concerned:
    /// it does not wait, for everybody who reads the informer waits with it.
    pub fn follow<T: Projection>(
        &mut self,
        informer: &Informer<T>,
        mut hear: impl FnMut(&Change<T>) + Send + 'static,
    ) {
        let (caught_up, is_caught_up) = oneshot::channel();
        let mut caught_up = Some(caught_up);
        self.caught_up.push(is_caught_up);
        informer.listen(move |change| match change {
            // Nobody may be waiting any more.
            Change::Synced => drop(caught_up.take().map(|caught_up| caught_up.send(()))),
            change => hear(change),
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
