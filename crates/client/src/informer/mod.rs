//! Informers: in-memory caches of a part of the cluster's state, kept up to date by watches.
//!
//! [`Informers`] creates them, each once: users of the same resource, namespace, selectors and
//! projection share one watch and one cache. A `reflector` keeps the cache in sync with the server;
//! what is cached of an object is a [`Projection`]: the whole tree, its metadata, a typed struct,
//! or a user-defined struct with the few fields that matter. `managedFields` are never cached.
//! Changes are delivered to a [`Subscription`] or a listener ([`Informer::listen`]): first
//! everything that exists, then every change in order. Reads ([`Informer::get`],
//! [`Informer::list`], [`Informer::by_index`]) use only the cache.

mod cached;
mod index;
mod projection;
mod reflector;
mod state;
mod subscription;
#[cfg(test)]
mod tests;

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::resource_version::ResourceVersion;
use coracle_base::sync::Mutex;
use tokio::sync::{oneshot, watch};

pub use cached::Cached;
pub use index::IndexError;
pub use projection::{Metadata, Projection, Typed, Whole};
pub use subscription::{Change, Subscription};

use crate::client::Client;
use crate::key::ObjectKey;
use crate::resource::Resource;
use crate::tasks::Tasks;
use state::Shared;

/// Which objects an informer caches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// The resource.
    pub resource: Resource,
    /// The namespace; empty: all.
    pub namespace: Text,
    /// The label selector; empty: all.
    pub labels: String,
    /// The field selector; empty: all.
    pub fields: String,
}

impl From<&Resource> for Selection {
    /// All objects of a resource.
    fn from(resource: &Resource) -> Selection {
        Selection {
            resource: resource.clone(),
            namespace: Text::default(),
            labels: String::new(),
            fields: String::new(),
        }
    }
}

impl Selection {
    /// All objects of a resource.
    pub fn all(resource: &Resource) -> Selection {
        Selection::from(resource)
    }

    /// Only objects of a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Selection {
        self.namespace = Text::new(namespace);
        self
    }

    /// Only objects with these fields: `spec.nodeName=n1`.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Selection {
        self.fields = selector.to_string();
        self
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Selection {
        self.labels = selector.to_string();
        self
    }
}

/// The informers of one client. Clones share them.
#[derive(Clone)]
pub struct Informers {
    client: Client,
    tasks: Tasks,
    made: Arc<Mutex<Registry>>,
}

#[derive(Default)]
struct Registry {
    informers: BTreeMap<(Selection, TypeId), Entry>,
}

impl Informers {
    /// Creates none yet. They send requests through `client` and run in `tasks`.
    pub fn new(client: Client, tasks: Tasks) -> Informers {
        Informers {
            client,
            tasks,
            made: Arc::default(),
        }
    }

    /// The informer of these objects in this projection. It is created and started on first use.
    pub fn of<T: Projection>(&self, selection: impl Into<Selection>) -> Informer<T> {
        let selection = selection.into();
        let mut made = self.made.lock();
        let name = (selection.clone(), TypeId::of::<T>());
        let known = made
            .informers
            .get(&name)
            .and_then(|one| one.informer.downcast_ref::<Informer<T>>());

        if let Some(informer) = known {
            return informer.clone();
        }

        let informer = Informer {
            shared: Arc::new(Shared::default()),
        };
        let reflector =
            reflector::Reflector::new(self.client.clone(), selection, informer.shared.clone());

        let (end, ended) = oneshot::channel::<()>();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                // An informer may outlive the factory: then it cannot be ended and waits forever.
                Ok(()) = ended => {}
                () = reflector.run() => {}
            }
        });

        let synced = informer.shared.synced();
        made.informers.insert(
            name,
            Entry {
                informer: Box::new(informer.clone()),
                synced,
                end,
            },
        );

        informer
    }

    /// Ends an informer for all its users: its contents stay as they are, and the next call of `of`
    /// for the same objects creates a new one. For resources that the server no longer has.
    pub fn end<T: Projection>(&self, informer: &Informer<T>) {
        let mut made = self.made.lock();
        let is_it = |one: &Entry| {
            let known = one.informer.downcast_ref::<Informer<T>>();
            known.is_some_and(|known| Arc::ptr_eq(&known.shared, &informer.shared))
        };

        let name = made
            .informers
            .iter()
            .find(|(_, one)| is_it(one))
            .map(|(name, _)| name.clone());

        if let Some(one) = name.and_then(|name| made.informers.remove(&name))
            && one.end.send(()).is_err()
        {
            tracing::debug!("informer task has already ended");
        }
    }

    /// Resolves when every informer created by now has synced.
    pub async fn synced(&self) {
        let waiting: Vec<_> = {
            let made = self.made.lock();
            made.informers
                .values()
                .map(|one| one.synced.clone())
                .collect()
        };

        for mut synced in waiting {
            if synced.wait_for(|synced| *synced).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// A registered informer.
struct Entry {
    informer: Box<dyn Any + Send>,
    synced: watch::Receiver<bool>,
    /// Ends its reflector.
    end: oneshot::Sender<()>,
}

/// A cache of a part of the cluster's state. Clones share it.
pub struct Informer<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Informer<T> {
    fn clone(&self) -> Informer<T> {
        Informer {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Projection> Informer<T> {
    /// Gets one object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Cached<T>>> {
        self.shared.read().objects.get(key).cloned()
    }

    /// All objects, in the order of their keys.
    pub fn list(&self) -> Vec<Arc<Cached<T>>> {
        self.shared.read().objects.values().cloned().collect()
    }

    /// The objects of a namespace, in the order of their names.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<Cached<T>>> {
        let state = self.shared.read();
        let first = ObjectKey::new(namespace, "");
        let from = state.objects.range(first..);
        from.take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.shared.read().objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an index by the values that `of` returns for each object.
    ///
    /// # Errors
    /// An index of that name exists already.
    pub fn add_index(
        &self,
        name: &'static str,
        of: impl Fn(&Cached<T>) -> Vec<Text> + Send + Sync + 'static,
    ) -> Result<(), IndexError> {
        self.shared.write().add_index(name, Box::new(of))
    }

    /// Adds an index unless it exists: for users of one informer that agree on its meaning.
    pub fn ensure_index(
        &self,
        name: &'static str,
        of: impl Fn(&Cached<T>) -> Vec<Text> + Send + Sync + 'static,
    ) {
        if let Err(IndexError::Twice(name)) = self.add_index(name, of) {
            tracing::trace!(name, "index already exists");
        }
    }

    /// The objects with a value in an index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<Cached<T>>>, IndexError> {
        Ok(self
            .shared
            .read()
            .index(name)?
            .objects_of(value)
            .cloned()
            .collect())
    }

    /// The keys of the objects with a value in an index.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self
            .shared
            .read()
            .index(name)?
            .objects_of(value)
            .map(|object| object.key.clone())
            .collect())
    }

    /// All values in an index.
    pub fn index_values(&self, name: &str) -> Result<Vec<Text>, IndexError> {
        Ok(self.shared.read().index(name)?.values().cloned().collect())
    }

    /// The objects that share a value in an index with `object`.
    pub fn alike(&self, name: &str, object: &Cached<T>) -> Result<Vec<Arc<Cached<T>>>, IndexError> {
        Ok(self.shared.read().index(name)?.objects_like(object))
    }

    /// Whether the initial list is complete.
    pub fn has_synced(&self) -> bool {
        *self.shared.synced().borrow()
    }

    /// Resolves when the initial list is complete.
    pub async fn synced(&self) {
        if self
            .shared
            .synced()
            .wait_for(|synced| *synced)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    }

    /// The newest resource version received.
    pub fn version(&self) -> ResourceVersion {
        self.shared.read().version
    }

    /// Delivers everything that exists, then every change.
    pub fn subscribe(&self) -> Subscription<T> {
        Subscription::new(self.shared.clone(), None)
    }

    /// Calls `listener` for everything that exists, then for every change, in the task that updates
    /// the cache, after the update. For listeners that only compute what a change affects. It must
    /// not block, nor listen to this informer; if it panics, it misses that one change.
    pub fn listen(&self, listener: impl FnMut(&Change<T>) + Send + 'static) {
        self.shared.listen(Box::new(listener));
    }

    /// Like [`Informer::subscribe`], and additionally repeats all objects at an interval, as
    /// updates without a change. The server is not queried for that.
    pub fn subscribe_with_resync(&self, every: Duration) -> Subscription<T> {
        Subscription::new(self.shared.clone(), Some(every.max(Duration::from_secs(1))))
    }
}
