//! The watch cache: every object in memory, every recent change in order.
//!
//! One feed watches the store and applies each change to the cache of its resource: a persistent map of shared entries
//! (a list or a page is a snapshot that costs a pointer) and a history for watchers. A write is answered when the feed has
//! applied it, so whoever reads afterwards sees it.

mod entry;
mod feed;
mod history;

pub use entry::{BadEntry, Entry};
pub use feed::{Caches, FeedError};
pub use history::{Change, Cursor, Event};

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use coracle_api::Text;
use coracle_api::catalog::{Page, Resource, Struct};
use coracle_store::Revision;
use history::History;
use imbl::OrdMap;
use tokio::sync::Notify;

/// The objects of one resource.
pub struct Cache {
    page: &'static Page,
    pub resource: &'static Resource,
    snapshot: ArcSwap<Snapshot>,
    history: Mutex<History>,
    changed: Notify,
    /// Snapshots that open `continue` tokens point at, the newest last.
    kept: Mutex<VecDeque<(Revision, Arc<Snapshot>)>>,
}

/// So many lists may be read page by page at once, per resource.
const KEPT_SNAPSHOTS: usize = 64;

/// All objects of a resource at one revision.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub revision: Revision,
    pub entries: OrdMap<Text, Arc<Entry>>,
}

impl Cache {
    fn new(page: &'static Page, resource: &'static Resource) -> Cache {
        Cache {
            page,
            resource,
            snapshot: ArcSwap::default(),
            history: Mutex::new(History::new(Revision::ZERO)),
            changed: Notify::new(),
            kept: Mutex::default(),
        }
    }

    /// The type of its objects.
    pub fn root(&self) -> Struct<'static> {
        let kind = self.page.kind(&self.resource.group, &self.resource.version, &self.resource.kind);
        self.page.root(kind.expect("the kind of a resource is in the catalogue"))
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.snapshot.load().entries.get(key).cloned()
    }

    /// A cursor over what happens after `revision`; the error is the oldest revision that is kept.
    pub fn after(&self, revision: Revision) -> Result<Cursor, Revision> {
        let history = self.history();
        history.after(revision).ok_or_else(|| history.oldest_kept())
    }

    /// All there is, and a cursor over what happens next.
    pub fn snapshot_and_after(&self) -> (Arc<Snapshot>, Cursor) {
        // The feed publishes the snapshot before it appends, both under this lock.
        let history = self.history();
        (self.snapshot.load_full(), history.end())
    }

    /// Resolves at the next change; taken before the history is looked at, it cannot be missed.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Keeps a snapshot for the pages that are yet to come.
    pub fn keep(&self, revision: Revision, snapshot: Arc<Snapshot>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().any(|(known, _)| *known == revision) {
            return;
        }
        if kept.len() == KEPT_SNAPSHOTS {
            kept.pop_front();
        }
        kept.push_back((revision, snapshot));
    }

    /// The snapshot that a list of that revision began with.
    pub fn snapshot_at(&self, revision: Revision) -> Option<Arc<Snapshot>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| *known == revision).map(|(_, snapshot)| snapshot.clone())
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, entries: OrdMap<Text, Arc<Entry>>, revision: Revision) {
        *self.history() = History::new(revision);
        self.snapshot.store(Arc::new(Snapshot { revision, entries }));
    }

    fn apply(&self, key: &str, new: Option<Entry>, revision: Revision) {
        let mut history = self.history();
        let mut snapshot = Snapshot::clone(&self.snapshot.load());
        snapshot.revision = revision;
        let previous = snapshot.entries.get(key).cloned();
        let event = match (new, previous) {
            (Some(entry), previous) => {
                let entry = Arc::new(entry);
                snapshot.entries.insert(Text::new(key), entry.clone());
                let change = if previous.is_some() { Change::Modified } else { Change::Added };
                Some(Event { change, revision, entry, previous })
            }
            (None, Some(previous)) => {
                snapshot.entries.remove(key);
                let entry = Arc::new(previous.at(revision));
                Some(Event { change: Change::Deleted, revision, entry, previous: Some(previous) })
            }
            (None, None) => None,
        };
        self.snapshot.store(Arc::new(snapshot));
        if let Some(event) = event {
            history.append(event);
        }
        drop(history);
        self.changed.notify_waiters();
    }

    fn forget(&self, revision: Revision) {
        self.history().forget(revision);
    }
}
