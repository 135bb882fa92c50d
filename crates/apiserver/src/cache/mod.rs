//! The watch cache: every object in memory, every recent change in order.
//!
//! One feed watches the store and applies each change to the cache of its resource: a persistent
//! map of shared entries (a list or a page is a snapshot that costs a pointer), a history for
//! watchers, and queues for watchers of a part of it. A write is acknowledged when the feed has
//! applied it, so later reads see it.

mod counts;
mod custom;
mod derived;
mod entries;
mod entry;
mod feed;
mod history;
mod notifier;
mod pending_writes;
mod progress;
mod texts;
mod trees;
mod watch_queues;

pub use counts::{Counts, ListCounts};
pub use custom::{Custom, Definitions};
pub use derived::{Derive, Derived, Read};
pub use entries::Entries;
pub use entry::{BadEntry, Converted, Entry};
pub use feed::{Caches, FeedError, PendingWrite, ROOT};
pub use history::{Change, Cursor, CursorOvertaken, Event};
pub use notifier::{Notifier, any_notified};
pub use trees::SharedTrees;
pub use watch_queues::{Interest, Listening};

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use arc_swap::ArcSwap;
use coracle_api::Text;
use coracle_api::catalog::Resource;
use coracle_api::selector::FieldSelector;
use coracle_base::sync::Mutex;
use coracle_store::Revision;
use history::History;
use tokio::time::Instant;
use watch_queues::WatchQueues;

use crate::definitions::Compiled;
use crate::storage_version::StorageVersion;

/// The objects of one resource.
pub struct Cache {
    of: StoredAs,
    /// Changes up to this revision were in it when it was created.
    since: Revision,
    /// Another one has taken its place.
    replaced: AtomicBool,
    snapshot: ArcSwap<Snapshot>,
    past: Mutex<WatchHistory>,
    notifier: Arc<Notifier>,
    /// Where the node of a pod is among the selectable fields.
    node_field: Option<usize>,
    /// Whether a reader in this process follows, or followed, its objects as trees.
    pub read_as_trees: AtomicBool,
    pub counts: Counts,
    /// Snapshots that open `continue` tokens point at, the newest last.
    kept: Mutex<VecDeque<(Revision, Arc<Snapshot>)>>,
}

/// How its objects are stored.
enum StoredAs {
    BuiltIn(StorageVersion<'static>),
    Custom(Arc<Compiled>),
}

/// What watchers read.
struct WatchHistory {
    history: History,
    queues: WatchQueues,
}

/// What a watch begins with.
pub struct Start {
    /// Matching events since the requested revision that are not after the cursor.
    pub missed: Vec<Event>,
    pub cursor: Cursor,
    pub listening: Listening,
}

/// So many lists may be read page by page at once, per resource.
const KEPT_SNAPSHOTS: usize = 64;

/// All objects of a resource at one revision.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub revision: Revision,
    pub entries: Entries,
}

impl Cache {
    fn new(storage_version: StorageVersion<'static>) -> Cache {
        Cache::holding(StoredAs::BuiltIn(storage_version), storage_version.resource)
    }

    /// StoredAs a custom resource, with its objects at a revision.
    fn custom(definition: &Arc<Compiled>, entries: Entries, revision: Revision) -> Cache {
        let mut cache = Cache::holding(
            StoredAs::Custom(definition.clone()),
            StorageVersion::of_definition(definition).resource,
        );
        cache.since = revision;
        cache.load(entries, revision);
        cache
    }

    fn holding(of: StoredAs, resource: &Resource) -> Cache {
        let is_pods = resource.group.is_empty() && resource.plural == "pods";
        let node_field = resource
            .selectable
            .iter()
            .position(|field| field.name == NODE_NAME);

        Cache {
            of,
            since: Revision::ZERO,
            replaced: AtomicBool::new(false),
            snapshot: ArcSwap::default(),
            past: Mutex::new(WatchHistory {
                history: History::new(Revision::ZERO),
                queues: WatchQueues::default(),
            }),
            notifier: Arc::default(),
            node_field: node_field.filter(|_| is_pods),
            read_as_trees: AtomicBool::new(false),
            counts: Counts::default(),
            kept: Mutex::default(),
        }
    }

    pub fn storage_version(&self) -> StorageVersion<'_> {
        match &self.of {
            StoredAs::BuiltIn(storage_version) => *storage_version,
            StoredAs::Custom(definition) => StorageVersion::of_definition(definition),
        }
    }

    /// Whether another cache has replaced it, which is updated instead.
    pub fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Acquire)
    }

    /// Another one replaces it. Watchers are disconnected.
    fn be_replaced(&self) {
        self.replaced.store(true, Ordering::Release);
        let snapshot = self.snapshot();
        self.load(snapshot.entries.clone(), snapshot.revision);
    }

    /// The events that a watcher with these selectors needs.
    pub fn interest(&self, namespace: &str, fields: &FieldSelector) -> Interest {
        if let Some(node) = fields
            .exact_value(NODE_NAME)
            .filter(|_| self.node_field.is_some())
        {
            return Interest::Node(Text::new(node));
        }

        match (fields.exact_value("metadata.name"), namespace) {
            (Some(name), "") if !self.storage_version().resource.namespaced => {
                Interest::Object(Text::new(name))
            }
            (Some(name), namespace) if !namespace.is_empty() => {
                Interest::Object(Text::new(format!("{namespace}/{name}")))
            }
            (_, "") => Interest::Everything,
            (_, namespace) => Interest::Namespace(Text::new(namespace)),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The revision of the newest change.
    pub fn revision(&self) -> Revision {
        self.snapshot.load().revision
    }

    /// A revision up to which cursors show every change.
    fn whole_revision(&self) -> Revision {
        // The feed publishes the snapshot and appends under this lock.
        let _past = self.past();
        self.revision()
    }

    pub fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.snapshot.load().entries.get(key).cloned()
    }

    /// Rung at every change.
    pub fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// Rung at every change of one object.
    pub fn notifier_of(&self, key: &str) -> Listening {
        let queue = self.past().queues.join(&Interest::Object(Text::new(key)));
        Listening::queue(queue.expect("an object has a queue"))
    }

    /// The events after `revision`; the error is the oldest revision that the history has.
    pub fn after(&self, revision: Revision, interest: &Interest) -> Result<Start, Revision> {
        let mut past = self.past();
        let cursor = past
            .history
            .after(revision)
            .ok_or_else(|| past.history.oldest_kept())?;

        let Some(queue) = past.queues.join(interest) else {
            let listening = Listening::everything(self.notifier.clone());
            return Ok(Start {
                missed: Vec::new(),
                cursor,
                listening,
            });
        };

        let mut missed = Vec::new();
        let mut whole = cursor;
        while let Ok(Some(event)) = whole.advance() {
            if self.concerns(event, interest) {
                missed.push(event.clone());
            }
        }

        Ok(Start {
            missed,
            cursor: queue.cursor(),
            listening: Listening::queue(queue),
        })
    }

    /// All there is, and what happens next.
    pub fn snapshot_and_after(&self, interest: &Interest) -> (Arc<Snapshot>, Start) {
        // The feed publishes the snapshot and appends under this lock.
        let mut past = self.past();
        let (cursor, listening) = match past.queues.join(interest) {
            None => (
                past.history.end(),
                Listening::everything(self.notifier.clone()),
            ),
            Some(queue) => (queue.cursor(), Listening::queue(queue)),
        };

        (
            self.snapshot.load_full(),
            Start {
                missed: Vec::new(),
                cursor,
                listening,
            },
        )
    }

    fn concerns(&self, event: &Event, interest: &Interest) -> bool {
        match interest {
            Interest::Everything => true,
            Interest::Namespace(namespace) => event.entry.namespace() == namespace,
            Interest::Object(key) => event.entry.key() == key,
            Interest::Node(node) => {
                let on = |entry: &Entry| {
                    self.node_field
                        .is_some_and(|place| entry.field(place) == node)
                };
                on(&event.entry) || event.previous.as_ref().is_some_and(|previous| on(previous))
            }
        }
    }

    /// Keeps a snapshot for the pages that are yet to come.
    pub fn keep(&self, revision: Revision, snapshot: Arc<Snapshot>) {
        let mut kept = self.kept.lock();
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
        let kept = self.kept.lock();
        kept.iter()
            .find(|(known, _)| *known == revision)
            .map(|(_, snapshot)| snapshot.clone())
    }

    fn past(&self) -> MutexGuard<'_, WatchHistory> {
        self.past.lock()
    }

    /// Starts over. Watchers have missed events, and are disconnected.
    fn load(&self, entries: Entries, revision: Revision) {
        let mut past = self.past();
        let before = std::mem::replace(&mut past.history, History::new(revision));
        self.counts.initializations.inc();
        self.counts.bytes.set(entries.iter().map(size).sum());
        self.snapshot
            .store(Arc::new(Snapshot { revision, entries }));
        before.close();
        past.queues.close();
        self.notifier.notify();
    }

    /// Applies changes of one batch, in order, and passes each notifier that is due to `arm`.
    /// Readers see all or none.
    fn apply(&self, changes: Vec<Applied<'_>>, mut arm: impl FnMut(&Arc<Notifier>)) {
        let mut past = self.past();
        let past = &mut *past;
        let mut snapshot = Snapshot::clone(&self.snapshot.load());

        self.counts.received.add(changes.len() as u64);
        let mut events = Vec::with_capacity(changes.len());
        for Applied { key, new, revision } in changes {
            snapshot.revision = revision;
            let event = match new {
                Some(entry) => {
                    let entry = Arc::new(entry);
                    let previous = snapshot.entries.insert(entry.clone());
                    let change = if previous.is_some() {
                        Change::Modified
                    } else {
                        Change::Added
                    };

                    Event {
                        change,
                        entry,
                        previous,
                    }
                }
                None => {
                    let Some(previous) = snapshot.entries.remove(key) else {
                        continue;
                    };

                    let entry = Arc::new(previous.at(revision));
                    Event {
                        change: Change::Deleted,
                        entry,
                        previous: Some(previous),
                    }
                }
            };
            events.push(event);
        }

        self.snapshot.store(Arc::new(snapshot));

        self.counts.dispatched.add(events.len() as u64);
        for event in events {
            self.counts.bytes.add(growth(&event));
            past.queues.append(&event, self.node_field, &mut arm);
            past.history.append(event);
        }

        if self.notifier.arm() {
            arm(&self.notifier);
        }
    }

    fn forget(&self, revision: Revision) {
        let mut past = self.past();
        past.history.forget(revision);
        past.history.forget_stale(Instant::now());
    }
}

/// The bytes of an object, for what is counted.
fn size(entry: &Arc<Entry>) -> i64 {
    i64::try_from(entry.bytes().len()).unwrap_or(i64::MAX)
}

/// By how many bytes an event changes the size of all objects.
fn growth(event: &Event) -> i64 {
    let before = event.previous.as_ref().map_or(0, size);
    match event.change {
        Change::Deleted => -before,
        Change::Added | Change::Modified => size(&event.entry) - before,
    }
}

/// One change to apply to a cache.
struct Applied<'k> {
    key: &'k str,
    /// `None`: it was deleted.
    new: Option<Entry>,
    revision: Revision,
}

const NODE_NAME: &str = "spec.nodeName";
