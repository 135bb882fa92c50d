//! Objects whose write is pending in the store.
//!
//! A writer has the tree whose bytes it hands to the store; the feed gets only the bytes back. So
//! the writer leaves the tree here, and the feed decodes nothing that this server wrote itself.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use coracle_api::Value;
use coracle_base::sync::Mutex;

use super::Entry;

#[derive(Default)]
pub(super) struct PendingWrites {
    /// By store key. Of several writers of one key at most one succeeds.
    open: Mutex<HashMap<Bytes, Vec<PendingEntry>>>,
}

/// An entry, and the tree that it was made from until the feed takes it.
struct PendingEntry {
    entry: Arc<Entry>,
    tree: Option<Value>,
}

impl PendingWrites {
    pub(super) fn add(&self, key: &Bytes, entry: &Arc<Entry>, tree: Value) {
        let pending = PendingEntry {
            entry: entry.clone(),
            tree: Some(tree),
        };
        self.open().entry(key.clone()).or_default().push(pending);
    }

    /// Removes an entry whose write succeeded or failed.
    pub(super) fn remove(&self, key: &Bytes, entry: &Arc<Entry>) {
        let mut open = self.open();
        let Some(pending) = open.get_mut(key) else {
            return;
        };
        pending.retain(|known| !Arc::ptr_eq(&known.entry, entry));
        if pending.is_empty() {
            open.remove(key);
        }
    }

    /// The pending entry with these bytes, and its tree.
    pub(super) fn find(&self, key: &[u8], bytes: &Bytes) -> Option<(Arc<Entry>, Option<Value>)> {
        let mut open = self.open();
        let pending = open
            .get_mut(key)?
            .iter_mut()
            .find(|pending| pending.entry.bytes() == bytes)?;
        Some((pending.entry.clone(), pending.tree.take()))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Bytes, Vec<PendingEntry>>> {
        self.open.lock()
    }
}
