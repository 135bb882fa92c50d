//! Informers: a part of the cluster's state held in memory, equal to the server's but for the time
//! it takes to hear.
//!
//! [`Informers`] makes them, and makes each only once: whoever names the same resource, namespace,
//! selectors and projection shares one watch and one cache. A `reflector` keeps the cache equal to
//! the server; what an object becomes in the cache is a [`Projection`]: the whole tree, its
//! metadata, a typed struct, or a struct of the user's own with the few fields that matter. Fields'
//! owners (`managedFields`) are never held. Whoever wants to know of changes has a
//! [`Subscription`], or listens ([`Informer::listen`]): first everything that there is, then every
//! change in order. Reading ([`Informer::get`], [`Informer::list`], [`Informer::by_index`]) asks
//! nobody.

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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coracle_api::Text;
use coracle_api::resource_version::ResourceVersion;
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

/// Which objects an informer holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// Of which resource.
    pub resource: Resource,
    /// Of which namespace; empty: of all.
    pub namespace: Text,
    /// With which labels; empty: with any.
    pub labels: String,
    /// With which fields; empty: with any.
    pub fields: String,
}

impl From<&Resource> for Selection {
    /// Everything of a resource.
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
    /// Everything of a resource.
    pub fn all(resource: &Resource) -> Selection {
        Selection::from(resource)
    }

    /// Only what is in a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Selection {
        self.namespace = Text::new(namespace);
        self
    }

    /// Only what has these fields: `spec.nodeName=n1`.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Selection {
        self.fields = selector.to_string();
        self
    }

    /// Only what has these labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Selection {
        self.labels = selector.to_string();
        self
    }
}

/// The informers of one client. Clones are the same.
#[derive(Clone)]
pub struct Informers {
    client: Client,
    tasks: Tasks,
    made: Arc<Mutex<Made>>,
}

#[derive(Default)]
struct Made {
    informers: BTreeMap<(Selection, TypeId), One>,
}

impl Informers {
    /// None yet. They will ask through `client` and run in `tasks`.
    pub fn new(client: Client, tasks: Tasks) -> Informers {
        Informers {
            client,
            tasks,
            made: Arc::default(),
        }
    }

    /// The informer of these objects in this projection. It is made, and begins, when it is first
    /// asked for.
    pub fn of<T: Projection>(&self, selection: impl Into<Selection>) -> Informer<T> {
        let selection = selection.into();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
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
                // Whoever holds the informer needs no factory: where that is gone, this never
                // comes.
                Ok(()) = ended => {}
                () = reflector.run() => {}
            }
        });

        let synced = informer.shared.synced();
        made.informers.insert(
            name,
            One {
                informer: Box::new(informer.clone()),
                synced,
                end,
            },
        );

        informer
    }

    /// Ends an informer for all who have it: what it holds stays as it is, and whoever asks for one
    /// of the same objects gets another. For resources that have gone from the server.
    pub fn end<T: Projection>(&self, informer: &Informer<T>) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &One| {
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
            tracing::debug!("the informer's task has ended already");
        }
    }

    /// Resolves when every informer that has been made by now holds what the server had.
    pub async fn synced(&self) {
        let waiting: Vec<_> = {
            let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
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

/// One of the informers.
struct One {
    informer: Box<dyn Any + Send>,
    synced: watch::Receiver<bool>,
    /// Ends its reflector.
    end: oneshot::Sender<()>,
}

/// A part of the cluster's state, in memory. Clones are the same.
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
    /// One object.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.shared.read().objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the objects another order: by the values that `of` finds in each.
    ///
    /// # Errors
    /// There is an index of that name.
    pub fn add_index(
        &self,
        name: &'static str,
        of: impl Fn(&Cached<T>) -> Vec<Text> + Send + Sync + 'static,
    ) -> Result<(), IndexError> {
        self.shared.write().add_index(name, Box::new(of))
    }

    /// Makes sure that there is an index of that name: for users of one informer who agree on what
    /// it means.
    pub fn ensure_index(
        &self,
        name: &'static str,
        of: impl Fn(&Cached<T>) -> Vec<Text> + Send + Sync + 'static,
    ) {
        if let Err(IndexError::Twice(name)) = self.add_index(name, of) {
            tracing::trace!(name, "the index is there already");
        }
    }

    /// The objects that have a value in an index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<Cached<T>>>, IndexError> {
        Ok(self
            .shared
            .read()
            .index(name)?
            .objects_of(value)
            .cloned()
            .collect())
    }

    /// The keys of the objects that have a value in an index.
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

    /// The objects that have a value of `object` in common with it.
    pub fn alike(&self, name: &str, object: &Cached<T>) -> Result<Vec<Arc<Cached<T>>>, IndexError> {
        Ok(self.shared.read().index(name)?.objects_like(object))
    }

    /// Whether everything that the server had at the beginning is held.
    pub fn has_synced(&self) -> bool {
        *self.shared.synced().borrow()
    }

    /// Resolves when everything that the server had at the beginning is held.
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

    /// The newest version that has been heard of.
    pub fn version(&self) -> ResourceVersion {
        self.shared.read().version
    }

    /// Everything there is, then every change.
    pub fn subscribe(&self) -> Subscription<T> {
        Subscription::new(self.shared.clone(), None)
    }

    /// Tells `listener` of everything there is, then of every change, on the spot: by the task that
    /// changes the cache, which can be read again by then. For those who only work out what a
    /// change concerns. It must not wait, nor listen to this very informer; where it panics it
    /// misses that one change.
    pub fn listen(&self, listener: impl FnMut(&Change<T>) + Send + 'static) {
        self.shared.listen(Box::new(listener));
    }

    /// Everything there is, then every change, and besides, every so often, everything there is
    /// once more, as updates that change nothing. The server is not asked for that.
    pub fn subscribe_with_resync(&self, every: Duration) -> Subscription<T> {
        Subscription::new(self.shared.clone(), Some(every.max(Duration::from_secs(1))))
    }
}
