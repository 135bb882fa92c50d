//! Watches many resources at once, as they are added to and removed from the server. Of every
//! object only the owners and the deletion state are kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::discovery::Served;
use coracle_client::{Change, Informer, Resource};
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::Context;
use crate::views::Owned;

/// Work starts after this time even if some resources have not been listed in full.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// The watched resources. Monitors of the same resources share the informers.
pub struct Monitors<H> {
    context: Context,
    which: fn(&Served) -> Vec<&Resource>,
    handle: H,
    watched: BTreeMap<Resource, Informer<Owned>>,
}

impl<H: Fn(&Arc<Resource>, &Change<Owned>) + Clone + Send + 'static> Monitors<H> {
    /// `which` selects among the served resources; `handle` is called for every change of their
    /// objects.
    pub fn new(context: &Context, which: fn(&Served) -> Vec<&Resource>, handle: H) -> Monitors<H> {
        Monitors {
            context: context.clone(),
            which,
            handle,
            watched: BTreeMap::new(),
        }
    }

    /// Starts watching; resolves when all initial lists have been handled, or after
    /// [`SYNC_TIMEOUT`].
    pub async fn begin(&mut self) {
        let served = self.context.resources().now().await;
        let synced = self.sync(&served);
        let all = async {
            for synced in synced {
                // The sender is dropped if the resource was removed in the meantime.
                drop(synced.await);
            }
        };
        if tokio::time::timeout(SYNC_TIMEOUT, all).await.is_err() {
            warn!("cannot list all resources in time; starting without them");
        }
    }

    /// Follows changes of the served resources. Never returns.
    pub async fn follow(mut self) {
        let mut resources = self.context.resources();
        loop {
            let served = resources.now().await;
            drop(self.sync(&served));
            resources.changed().await;
        }
    }

    /// Watches exactly the served resources. Returns receivers that resolve when the new ones have
    /// been listed.
    fn sync(&mut self, served: &Served) -> Vec<oneshot::Receiver<()>> {
        let wanted = (self.which)(served);
        if wanted.is_empty() {
            // An empty list is a failed discovery.
            return Vec::new();
        }

        let gone: Vec<Resource> = self
            .watched
            .keys()
            .filter(|resource| !wanted.contains(resource))
            .cloned()
            .collect();

        for resource in gone {
            info!(%resource, "resource removed; watch stopped");
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
        let handle = self.handle.clone();
        let of = Arc::new(resource.clone());
        let (synced, is_synced) = oneshot::channel();

        let mut synced = Some(synced);
        informer.listen(move |change| match change {
            // The receiver may be gone.
            Change::Synced => drop(synced.take().map(|synced| synced.send(()))),
            change => handle(&of, change),
        });

        self.watched.insert(resource, informer);

        is_synced
    }
}
