//! State derived from caches, such as an index or a graph. A reader updates it before it reads, so
//! that nothing polls, nothing lags behind an acknowledged write, and state that is not read costs
//! nothing.

use std::ops::Deref;
use std::sync::{Arc, MutexGuard};

use arc_swap::{ArcSwap, Guard};
use coracle_base::sync::Mutex;
use coracle_store::Revision;

use super::{Cache, Cursor, Entry, Interest};
use crate::storage_version::StorageVersion;

/// State that is derived from the objects of some caches. A clone must be cheap: readers share one.
pub trait Derive: Clone + Default + Send + Sync {
    /// Applies one change. `of` is the index of the object's cache among those that the state is
    /// derived from.
    fn take(
        &mut self,
        of: usize,
        storage_version: &StorageVersion<'_>,
        old: Option<&Entry>,
        new: Option<&Entry>,
    );
}

/// Such state, and how far it has come.
pub struct Derived<T> {
    caches: Vec<Arc<Cache>>,
    current: ArcSwap<Current<T>>,
    /// Where each cache's history is read on; empty before the first read.
    cursors: Mutex<Vec<Cursor>>,
}

struct Current<T> {
    /// Of each cache, the revision up to which it has been taken in.
    seen: Vec<Revision>,
    state: T,
}

/// The state at one moment.
pub struct Read<T>(Guard<Arc<Current<T>>>);

impl<T> Deref for Read<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.state
    }
}

impl<T: Derive> Derived<T> {
    /// Derived from these caches, which have been filled when it is first read.
    pub fn new(caches: Vec<Arc<Cache>>) -> Derived<T> {
        let current = Current {
            seen: Vec::new(),
            state: T::default(),
        };
        Derived {
            caches,
            current: ArcSwap::from_pointee(current),
            cursors: Mutex::default(),
        }
    }

    /// The state with every write in it that has been answered.
    pub fn read(&self) -> Read<T> {
        let current = self.current.load();
        if self.is_fresh(&current.seen) {
            return Read(current);
        }
        self.catch_up();
        Read(self.current.load())
    }

    fn is_fresh(&self, seen: &[Revision]) -> bool {
        seen.len() == self.caches.len()
            && self
                .caches
                .iter()
                .zip(seen)
                .all(|(cache, at)| cache.revision() == *at)
    }

    fn catch_up(&self) {
        let mut cursors = self.cursors();
        let current = self.current.load_full();
        // Another reader may have been faster.
        if self.is_fresh(&current.seen) {
            return;
        }
        let next = self
            .advanced(&mut cursors, &current)
            .unwrap_or_else(|| self.rebuilt(&mut cursors));
        self.current.store(Arc::new(next));
    }

    /// The state with the events since; `None`: some of them are no longer in the history.
    fn advanced(&self, cursors: &mut [Cursor], current: &Current<T>) -> Option<Current<T>> {
        if cursors.is_empty() {
            return None;
        }

        let mut next = Current {
            seen: current.seen.clone(),
            state: current.state.clone(),
        };

        for (of, (cache, cursor)) in self.caches.iter().zip(cursors).enumerate() {
            // Up to this revision the history is whole.
            let mut seen = cache.whole_revision();
            while let Some(event) = cursor.advance().ok()? {
                let new = (event.change != super::Change::Deleted).then_some(&*event.entry);
                next.state
                    .take(of, &cache.storage_version(), event.previous.as_deref(), new);
                seen = seen.max(event.revision());
            }

            next.seen[of] = seen;
        }

        Some(next)
    }

    fn rebuilt(&self, cursors: &mut Vec<Cursor>) -> Current<T> {
        cursors.clear();
        let mut next = Current {
            seen: Vec::new(),
            state: T::default(),
        };

        for (of, cache) in self.caches.iter().enumerate() {
            let (snapshot, start) = cache.snapshot_and_after(&Interest::Everything);
            for entry in snapshot.entries.iter() {
                next.state
                    .take(of, &cache.storage_version(), None, Some(entry));
            }
            cursors.push(start.cursor);
            next.seen.push(snapshot.revision);
        }

        next
    }

    fn cursors(&self) -> MutexGuard<'_, Vec<Cursor>> {
        self.cursors.lock()
    }
}
