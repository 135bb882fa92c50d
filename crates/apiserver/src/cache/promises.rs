//! What writers know of objects that are on their way through the store.
//!
//! A writer has the tree whose bytes it hands to the store; the feed gets only the bytes back. So
//! the writer leaves what the cache needs here, and the feed decodes nothing that this server wrote
//! itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use coracle_api::Value;

use super::Entry;

#[derive(Default)]
pub(super) struct Promises {
    /// By store key. Of several writers of one key at most one succeeds.
    open: Mutex<HashMap<Bytes, Vec<Promised>>>,
}

/// An entry on its way, and the tree that it was made from until somebody takes it.
struct Promised {
    entry: Arc<Entry>,
    tree: Option<Value>,
}

impl Promises {
    pub(super) fn make(&self, key: &Bytes, entry: &Arc<Entry>, tree: Value) {
        let promised = Promised {
            entry: entry.clone(),
            tree: Some(tree),
        };
        self.open().entry(key.clone()).or_default().push(promised);
    }

    /// Takes a promise back that did not come true, or has.
    pub(super) fn withdraw(&self, key: &Bytes, entry: &Arc<Entry>) {
        let mut open = self.open();
        let Some(promised) = open.get_mut(key) else {
            return;
        };
        promised.retain(|known| !Arc::ptr_eq(&known.entry, entry));
        if promised.is_empty() {
            open.remove(key);
        }
    }

    /// The entry that somebody promised with these bytes, and its tree.
    pub(super) fn find(&self, key: &[u8], bytes: &Bytes) -> Option<(Arc<Entry>, Option<Value>)> {
        let mut open = self.open();
        let promised = open
            .get_mut(key)?
            .iter_mut()
            .find(|promised| promised.entry.bytes() == bytes)?;
        Some((promised.entry.clone(), promised.tree.take()))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Bytes, Vec<Promised>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
