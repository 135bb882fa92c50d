//! The cache of one informer and those who follow it, changed together under one lock.
//!
//! Whoever subscribes gets a copy of the cache and a place among those who are told, in one step:
//! so it hears of every object exactly once, and of every change after. Listeners are told on the
//! spot, once the cache can be read again: they look something up and put a key into a queue, and
//! to wake a task of its own for each would cost more than that.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use coracle_api::resource_version::ResourceVersion;
use tokio::sync::{mpsc, watch};

use super::index::{Index, IndexError, ValuesOf};
use super::subscription::Change;
use super::{Cached, Projection};
use crate::key::ObjectKey;

pub(super) struct Shared<T> {
    state: RwLock<State<T>>,
    /// Held from before a change until all have been told of it: whoever begins to listen hears of
    /// it once.
    listeners: Mutex<Vec<Listener<T>>>,
    synced: watch::Sender<bool>,
}

/// Somebody who is told on the spot.
pub(super) type Listener<T> = Box<dyn FnMut(&Change<T>) + Send>;

pub(super) struct State<T> {
    pub(super) objects: BTreeMap<ObjectKey, Arc<Cached<T>>>,
    indexes: Vec<Index<T>>,
    followers: Vec<mpsc::UnboundedSender<Change<T>>>,
    /// What listeners have not been told yet.
    news: Vec<Change<T>>,
    pub(super) version: ResourceVersion,
    synced: bool,
}

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        let state = State {
            objects: BTreeMap::new(),
            indexes: Vec::new(),
            followers: Vec::new(),
            news: Vec::new(),
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
    /// Nothing will happen any more. Listeners may hold this very informer, which would never be
    /// let go otherwise.
    pub(super) fn end(&self) {
        drop(std::mem::take(
            &mut *self
                .listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        ));
    }
}

impl<T: Projection> Shared<T> {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Changes what is held, and tells everybody.
    pub(super) fn change(&self, change: impl FnOnce(&mut State<T>)) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);

        let news = {
            let mut state = self.write();
            change(&mut state);
            std::mem::take(&mut state.news)
        };

        for listener in &mut *listeners {
            news.iter().for_each(|change| tell(listener, change));
        }
    }

    /// Somebody is told from here on, beginning with everything that there is.
    pub(super) fn listen(&self, mut listener: Listener<T>) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);

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
            .for_each(|change| tell(&mut listener, &change));
        listeners.push(listener);
    }

    /// The server has exactly these objects: what differs is told.
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
                state.tell(Change::Synced);
                self.synced.send_replace(true);
            }
        });
    }
}

/// One who fails at a change is told of the next.
fn tell<T>(listener: &mut Listener<T>, change: &Change<T>) {
    if panic::catch_unwind(AssertUnwindSafe(|| listener(change))).is_err() {
        tracing::error!("a listener panicked at a change");
    }
}

impl<T: Projection> State<T> {
    /// Whether an object came or changed is decided by what is held, not by what the server calls
    /// it.
    pub(super) fn put(&mut self, new: Arc<Cached<T>>) {
        let old = self.objects.get(&new.key).cloned();
        match old {
            // Told before: a list after a lost connection repeats what is known.
            Some(old) if old.version == new.version && old.uid == new.uid => {}
            // Another object of the same name: the end of the first was missed.
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
                self.tell(Change::Updated { old, new });
            }
            None => self.insert(new),
        }
    }

    fn insert(&mut self, object: Arc<Cached<T>>) {
        self.indexes.iter_mut().for_each(|index| index.add(&object));
        self.objects.insert(object.key.clone(), object.clone());
        let initial = !self.synced;
        self.tell(Change::Added { object, initial });
    }

    /// `last` is the object's last state, if somebody saw it go.
    pub(super) fn remove(&mut self, key: &ObjectKey, last: Option<Arc<Cached<T>>>) {
        let Some(held) = self.objects.remove(key) else {
            return;
        };
        self.indexes
            .iter_mut()
            .for_each(|index| index.remove(&held));
        let certain = last.is_some();
        self.tell(Change::Deleted {
            object: last.unwrap_or(held),
            certain,
        });
    }

    /// Versions may only advance.
    pub(super) fn heard_of(&mut self, version: ResourceVersion) {
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

    /// Somebody is told from here on, beginning with everything that there is.
    pub(super) fn follow(&mut self) -> mpsc::UnboundedReceiver<Change<T>> {
        let (follower, told) = mpsc::unbounded_channel();
        let held = self.objects.values().cloned();
        let initial = held.map(|object| Change::Added {
            object,
            initial: true,
        });

        let synced = self.synced.then_some(Change::Synced);

        // It cannot be closed: `told` is still here.
        initial
            .chain(synced)
            .for_each(|change| drop(follower.send(change)));
        self.followers.push(follower);

        told
    }

    fn tell(&mut self, change: Change<T>) {
        self.followers
            .retain(|follower| follower.send(change.clone()).is_ok());
        self.news.push(change);
    }
}
