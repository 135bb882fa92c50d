//! The cache of one informer and its subscribers, changed together under one lock.
//!
//! Subscribing copies the cache and registers the subscriber in one step, so that it gets every
//! object exactly once, and every change after. Listeners are called directly, after the lock of
//! the cache is released: they look something up and add a key to a queue, and waking a task for
//! each would cost more than that.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};

use coracle_api::resource_version::ResourceVersion;
use coracle_base::sync::{Mutex, RwLock};
use tokio::sync::{mpsc, watch};

use super::index::{Index, IndexError, ValuesOf};
use super::subscription::Change;
use super::{Cached, Projection};
use crate::key::ObjectKey;

pub(super) struct Shared<T> {
    state: RwLock<State<T>>,
    /// Held from before a change until all listeners were called: a new listener gets the change
    /// exactly once.
    listeners: Mutex<Vec<Listener<T>>>,
    synced: watch::Sender<bool>,
}

/// A function that is called for every change.
pub(super) type Listener<T> = Box<dyn FnMut(&Change<T>) + Send>;

pub(super) struct State<T> {
    pub(super) objects: BTreeMap<ObjectKey, Arc<Cached<T>>>,
    indexes: Vec<Index<T>>,
    followers: Vec<mpsc::UnboundedSender<Change<T>>>,
    /// Changes for which listeners were not called yet.
    changes: Vec<Change<T>>,
    pub(super) version: ResourceVersion,
    synced: bool,
}

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        let state = State {
            objects: BTreeMap::new(),
            indexes: Vec::new(),
            followers: Vec::new(),
            changes: Vec::new(),
            version: ResourceVersion(0),
            synced: false,
        };

        Shared {
            state: RwLock::new(state),
            listeners: Mutex::new(Vec::new()),
            synced: watch::Sender::new(false),
        }
    }
}

impl<T> Shared<T> {
    /// Ends the informer. Listeners may hold this informer, which would never be freed otherwise.
    pub(super) fn end(&self) {
        drop(std::mem::take(&mut *self.listeners.lock()));
    }
}

impl<T: Projection> Shared<T> {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write()
    }

    pub(super) fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Changes the cache and calls the listeners.
    pub(super) fn change(&self, change: impl FnOnce(&mut State<T>)) {
        let mut listeners = self.listeners.lock();

        let changes = {
            let mut state = self.write();
            change(&mut state);
            std::mem::take(&mut state.changes)
        };

        for listener in &mut *listeners {
            changes
                .iter()
                .for_each(|change| call_listener(listener, change));
        }
    }

    /// Adds a listener and calls it for everything that exists.
    pub(super) fn listen(&self, mut listener: Listener<T>) {
        let mut listeners = self.listeners.lock();

        let (held, synced) = {
            let state = self.read();
            (
                state.objects.values().cloned().collect::<Vec<_>>(),
                state.synced,
            )
        };

        let initial = held.into_iter().map(|object| Change::Added {
            object,
            initial: true,
        });

        initial
            .chain(synced.then_some(Change::Synced))
            .for_each(|change| call_listener(&mut listener, &change));
        listeners.push(listener);
    }

    /// Replaces the contents with these objects and reports the differences.
    pub(super) fn replace(
        &self,
        objects: BTreeMap<ObjectKey, Arc<Cached<T>>>,
        version: ResourceVersion,
    ) {
        self.change(|state| {
            let gone: Vec<ObjectKey> = state
                .objects
                .keys()
                .filter(|key| !objects.contains_key(*key))
                .cloned()
                .collect();

            for key in gone {
                state.remove(&key, None);
            }

            objects.into_values().for_each(|object| state.put(object));
            state.version = state.version.max(version);

            if !state.synced {
                state.synced = true;
                state.notify(Change::Synced);
                self.synced.send_replace(true);
            }
        });
    }
}

/// A listener that panics is called for the next change again.
fn call_listener<T>(listener: &mut Listener<T>, change: &Change<T>) {
    if panic::catch_unwind(AssertUnwindSafe(|| listener(change))).is_err() {
        tracing::error!("informer listener panicked");
    }
}

impl<T: Projection> State<T> {
    /// Whether an object is new is decided by the cache, not by the event type.
    pub(super) fn put(&mut self, new: Arc<Cached<T>>) {
        let old = self.objects.get(&new.key).cloned();
        match old {
            // Known already: a list after a lost connection repeats known objects.
            Some(old) if old.version == new.version && old.uid == new.uid => {}
            // Another object of the same name: the deletion of the first one was missed.
            Some(old) if old.uid != new.uid => {
                self.remove(&new.key, None);
                self.insert(new);
            }
            Some(old) => {
                self.indexes
                    .iter_mut()
                    .for_each(|index| index.replace(&old, &new));
                if let Some(held) = self.objects.get_mut(&new.key) {
                    *held = new.clone();
                }
                self.notify(Change::Updated { old, new });
            }
            None => self.insert(new),
        }
    }

    fn insert(&mut self, object: Arc<Cached<T>>) {
        self.indexes.iter_mut().for_each(|index| index.add(&object));
        self.objects.insert(object.key.clone(), object.clone());
        let initial = !self.synced;
        self.notify(Change::Added { object, initial });
    }

    /// `last` is the object's last state, if the deletion was observed.
    pub(super) fn remove(&mut self, key: &ObjectKey, last: Option<Arc<Cached<T>>>) {
        let Some(held) = self.objects.remove(key) else {
            return;
        };
        self.indexes
            .iter_mut()
            .for_each(|index| index.remove(&held));
        let certain = last.is_some();
        self.notify(Change::Deleted {
            object: last.unwrap_or(held),
            certain,
        });
    }

    /// The resource version never decreases.
    pub(super) fn advance_version(&mut self, version: ResourceVersion) {
        self.version = self.version.max(version);
    }

    pub(super) fn add_index(
        &mut self,
        name: &'static str,
        of: ValuesOf<T>,
    ) -> Result<(), IndexError> {
        if self.indexes.iter().any(|index| index.name == name) {
            return Err(IndexError::Twice(name));
        }
        let mut index = Index::new(name, of);
        self.objects.values().for_each(|object| index.add(object));
        self.indexes.push(index);
        Ok(())
    }

    pub(super) fn index(&self, name: &str) -> Result<&Index<T>, IndexError> {
        let found = self.indexes.iter().find(|index| index.name == name);
        found.ok_or_else(|| IndexError::Unknown(name.to_string()))
    }

    /// Adds a subscriber, starting with everything that exists.
    pub(super) fn follow(&mut self) -> mpsc::UnboundedReceiver<Change<T>> {
        let (follower, receiver) = mpsc::unbounded_channel();
        let held = self.objects.values().cloned();
        let initial = held.map(|object| Change::Added {
            object,
            initial: true,
        });

        let synced = self.synced.then_some(Change::Synced);

        // It cannot be closed: `receiver` still exists.
        initial
            .chain(synced)
            .for_each(|change| drop(follower.send(change)));
        self.followers.push(follower);

        receiver
    }

    fn notify(&mut self, change: Change<T>) {
        self.followers
            .retain(|follower| follower.send(change.clone()).is_ok());
        self.changes.push(change);
    }
}
