//! Many resources watched at once, as they come and go: of every object only whom it belongs to,
//! and whether it is going.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::discovery::Served;
use coracle_client::{Change, Informer, Resource};
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::Context;
use crate::views::Owned;

/// Work begins after this time even where some resource has not been heard of in full.
const PATIENCE: Duration = Duration::from_secs(30);

/// The resources that are watched. Those who watch the same share the informers.
pub struct Monitors<H> {
    context: Context,
    which: fn(&Served) -> Vec<&Resource>,
    hear: H,
    watched: BTreeMap<Resource, Informer<Owned>>,
}

impl<H: Fn(&Arc<Resource>, &Change<Owned>) + Clone + Send + 'static> Monitors<H> {
    /// `which` chooses among what a server has; `hear` is told of everything that happens to its
    /// objects.
    pub fn new(context: &Context, which: fn(&Served) -> Vec<&Resource>, hear: H) -> Monitors<H> {
        Monitors {
            context: context.clone(),
            which,
            hear,
            watched: BTreeMap::new(),
        }
    }

    /// Begins to watch; resolves when everything there is has been heard, or that takes too long.
    pub async fn begin(&mut self) {
        let served = self.context.resources().now().await;
        let heard = self.sync(&served);
        let all = async {
            for heard in heard {
                // One whose resource has gone meanwhile is not waited for.
                drop(heard.await);
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            warn!("not every resource could be listed: work begins nevertheless");
        }
    }

    /// Follows what comes and goes. Never returns.
    pub async fn follow(mut self) {
        let mut resources = self.context.resources();
        loop {
            let served = resources.now().await;
            drop(self.sync(&served));
            resources.changed().await;
        }
    }

    /// Watches exactly what is there. Answers what resolves when those that are new have been
    /// heard.
    fn sync(&mut self, served: &Served) -> Vec<oneshot::Receiver<()>> {
        let wanted = (self.which)(served);
        if wanted.is_empty() {
            // A server that has nothing at all has not said so in earnest.
            return Vec::new();
        }

        let gone: Vec<Resource> = self
            .watched
            .keys()
            .filter(|resource| !wanted.contains(resource))
            .cloned()
            .collect();

        for resource in gone {
            info!(%resource, "is no longer watched");
            if let Some(informer) = self.watched.remove(&resource) {
                self.context.informers.end(&informer);
            }
        }

        let new = wanted
            .into_iter()
            .filter(|resource| !self.watched.contains_key(resource));
        let new: Vec<Resource> = new.cloned().collect();

        new.into_iter()
            .map(|resource| self.watch(resource))
            .collect()
    }

    fn watch(&mut self, resource: Resource) -> oneshot::Receiver<()> {
        let informer: Informer<Owned> = self.context.informers.of(&resource);
        let hear = self.hear.clone();
        let of = Arc::new(resource.clone());
        let (heard, is_heard) = oneshot::channel();

        let mut heard = Some(heard);
        informer.listen(move |change| match change {
            // Nobody may be waiting any more.
            Change::Synced => drop(heard.take().map(|heard| heard.send(()))),
            change => hear(&of, change),
        });

        self.watched.insert(resource, informer);

        is_heard
    }
}
