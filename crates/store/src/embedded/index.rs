//! The index: every key with its versions, and the changes in order. In memory, without I/O; all
//! reads go through it.
//!
//! The newest value of a live key is in memory; of older versions only their position on disk. A
//! change enters through [`Index::apply`] once it is durable, so readers see durable writes only.
//! History is removed through [`Index::trim`].

use super::files::File;
use super::frame::{FileId, Position};
use crate::{Event, EventKind, KeyRange, KeyValue, LeaseId, Revision, StoreError, Thin};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, HashMap, VecDeque, btree_map::Entry},
    sync::Arc,
};

/// A key as stored: a quarter of the size of `Bytes`, which readers get.
type Key = Thin;

#[derive(Default)]
pub(crate) struct Index {
    /// Boxed, because the map's nodes are little more than half full if keys are inserted in order.
    keys: BTreeMap<Key, Box<Versions>>,
    /// Changes since the last trim, oldest first.
    history: VecDeque<Change>,
    revision: Revision,
    /// The oldest revision that is not compacted.
    compacted: Revision,
    files: HashMap<FileId, Arc<dyn File>>,
    /// The size of the live keys on disk.
    live_bytes: u64,
    live_keys: u64,
    recent: Recent,
}

/// The history's capacity grows by an eighth, and by at least this many changes.
const LEAST_GROWTH: usize = 1024;

/// A key's newest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) value: Bytes,
    pub(crate) create: Revision,
    pub(crate) modified: Revision,
    pub(crate) version: u64,
    pub(crate) lease: Option<LeaseId>,
    pub(crate) at: Position,
}

/// All versions of a key. Without `live`, the last of `older` is its deletion.
#[derive(Default)]
struct Versions {
    live: Option<Live>,
    /// Oldest first.
    #[expect(
        clippy::box_collection,
        reason = "most keys have none, and a `Vec` is larger"
    )]
    older: Option<Box<VecDeque<Version>>>,
}

/// A version that is no longer the newest.
#[derive(Clone, Copy)]
struct Version {
    modified: Revision,
    /// `None`: the key was deleted.
    at: Option<Position>,
}

struct Change {
    revision: Revision,
    key: Key,
    /// The whole event, while it is one of the most recent.
    event: Option<Box<Event>>,
}

/// How many of the newest changes still hold their event, and the size of those.
#[derive(Default)]
struct Recent {
    changes: usize,
    bytes: usize,
    limit: usize,
}

/// A write of one key, ready to become visible.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Bytes,
    /// `None` deletes.
    pub(crate) live: Option<Live>,
}

/// A version: the value, or its position on disk.
#[derive(Clone)]
pub(crate) enum Found {
    Here(KeyValue),
    OnDisk {
        key: Bytes,
        modified: Revision,
        at: Position,
        file: Arc<dyn File>,
    },
}

/// A change for a watcher.
pub(crate) enum FoundEvent {
    Here(Event),
    Pieces {
        kind: EventKind,
        kv: Found,
        previous: Option<Found>,
    },
}

/// A key to be written to a part file.
pub(crate) struct Settled {
    pub(crate) found: Found,
    pub(crate) modified: Revision,
}

/// Changes in order, up to and including a revision.
pub(crate) struct Scan {
    pub(crate) events: Vec<FoundEvent>,
    pub(crate) through: Revision,
    /// Whether that revision is the current one.
    pub(crate) complete: bool,
}

impl Index {
    pub(crate) fn new(revision: Revision, compacted: Revision) -> Self {
        Index {
            revision,
            compacted,
            ..Index::default()
        }
    }

    /// Loads the settled keys, in order and each once, before anything else is applied.
    pub(crate) fn load(&mut self, settled: Vec<(Bytes, Live)>) {
        self.live_keys = settled.len() as u64;
        self.live_bytes = settled.iter().map(|(key, live)| weight(key, live)).sum();
        let versions = |live| {
            Box::new(Versions {
                live: Some(live),
                older: None,
            })
        };

        self.keys = settled
            .into_iter()
            .map(|(key, live)| (Key::from(&*key), versions(live)))
            .collect();
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(crate) fn live_keys(&self) -> u64 {
        self.live_keys
    }

    /// The size of the history in memory: its changes, the versions they superseded, and the values
    /// of recent events.
    pub(crate) fn history_bytes(&self) -> usize {
        self.history.len() * (size_of::<Change>() + size_of::<Version>()) + self.recent.bytes
    }

    pub(crate) fn live(&self, key: &[u8]) -> Option<&Live> {
        self.keys.get(key)?.live.as_ref()
    }

    /// The live keys of a range, in order.
    pub(crate) fn live_range<'a>(
        &'a self,
        range: &KeyRange,
    ) -> impl Iterator<Item = (&'a [u8], &'a Live)> + use<'a> {
        self.versions(range)
            .filter_map(|(key, versions)| Some((key, versions.live.as_ref()?)))
    }

    /// Whether a read at `revision` is possible.
    pub(crate) fn readable(&self, revision: Revision) -> Result<(), StoreError> {
        if revision > self.revision {
            return Err(StoreError::FutureRevision {
                requested: revision,
                current: self.revision,
            });
        }
        self.uncompacted(revision)
    }

    pub(crate) fn uncompacted(&self, revision: Revision) -> Result<(), StoreError> {
        if revision < self.compacted {
            return Err(StoreError::Compacted {
                requested: revision,
                compacted: self.compacted,
            });
        }
        Ok(())
    }

    /// The keys of `range` as they were at `revision`, in order.
    pub(crate) fn at<'a>(
        &'a self,
        range: &KeyRange,
        revision: Revision,
    ) -> impl Iterator<Item = (&'a [u8], Existing<'a>)> + use<'a> {
        self.versions(range)
            .filter_map(move |(key, versions)| Some((key, versions.at(revision)?)))
    }

    pub(crate) fn found(&self, key: &[u8], existing: &Existing<'_>) -> Found {
        let key = Bytes::copy_from_slice(key);
        match *existing {
            Existing::Live(live) => Found::Here(live.kv(key)),
            Existing::Older(modified, at) => {
                let file = self
                    .files
                    .get(&at.file)
                    .expect("a file is kept while it contains a readable version");

                Found::OnDisk {
                    key,
                    modified,
                    at,
                    file: file.clone(),
                }
            }
        }
    }

    /// Makes a durable transaction visible, write by write.
    pub(crate) fn apply(&mut self, revision: Revision, writes: Vec<Write>) -> Vec<Applied> {
        self.revision = revision;
        writes
            .into_iter()
            .map(|write| self.apply_one(revision, write))
            .collect()
    }

    fn apply_one(&mut self, revision: Revision, write: Write) -> Applied {
        let Write { key: written, live } = write;

        // One copy of the key is shared by all its versions.
        let (key, versions) = match self.keys.entry(Key::from(&*written)) {
            Entry::Occupied(known) => (known.key().clone(), known.into_mut()),
            Entry::Vacant(new) => (new.key().clone(), new.insert(Box::default())),
        };

        let old = std::mem::replace(&mut versions.live, live.clone());
        if let Some(old) = &old {
            versions.push(Version {
                modified: old.modified,
                at: Some(old.at),
            });
            self.live_bytes -= weight(&key, old);
            self.live_keys -= 1;
        }

        match &live {
            Some(live) => {
                self.live_bytes += weight(&key, live);
                self.live_keys += 1;
            }
            None => versions.push(Version {
                modified: revision,
                at: None,
            }),
        }

        self.record_change(revision, key, live.as_ref(), old.as_ref());
        let lease = |live: Option<Live>| live.and_then(|live| live.lease);

        Applied {
            key: written,
            old_lease: lease(old),
            new_lease: lease(live),
        }
    }

    /// Keeps the events of recent changes in memory from now on, up to this many bytes.
    pub(crate) fn keep_recent(&mut self, bytes: usize) {
        self.recent.limit = bytes;
    }

    fn record_change(
        &mut self,
        revision: Revision,
        key: Key,
        live: Option<&Live>,
        old: Option<&Live>,
    ) {
        // Doubling the capacity would waste memory: on average a quarter of it would be unused.
        if self.history.len() == self.history.capacity() {
            self.history
                .reserve_exact(LEAST_GROWTH.max(self.history.len() / 8));
        }

        if self.recent.limit == 0 {
            self.history.push_back(Change {
                revision,
                key,
                event: None,
            });
            return;
        }

        // A copy, because the writer's bytes may keep a whole request alive.
        let named = Bytes::copy_from_slice(&key);
        let (kind, kv) = match live {
            Some(live) => (EventKind::Put, live.kv(named.clone())),
            None => (EventKind::Delete, deletion(named.clone(), revision)),
        };

        let event = Event {
            kind,
            kv,
            previous: old.map(|old| old.kv(named)),
        };
        self.recent.bytes += held(&event);

        self.recent.changes += 1;
        self.history.push_back(Change {
            revision,
            key,
            event: Some(Box::new(event)),
        });
    }

    /// Takes the oldest events in memory until the rest is within the limit. Freeing them takes
    /// longer than taking them, so the caller does that after it has released the index lock.
    #[expect(
        clippy::vec_box,
        reason = "the boxes are moved: unpacking would copy and free under the lock"
    )]
    pub(crate) fn take_beyond_recent(&mut self) -> Vec<Box<Event>> {
        let mut beyond = Vec::new();
        while self.recent.bytes > self.recent.limit {
            let oldest = self.history.len() - self.recent.changes;
            let event = self.history[oldest]
                .event
                .take()
                .expect("the newest changes hold their events");
            self.recent.bytes -= held(&event);
            self.recent.changes -= 1;
            beyond.push(event);
        }

        beyond
    }

    /// Changes in `range` from `from` on, until `most` of them were found or `scan_limit` changes were
    /// examined. A revision is never split.
    pub(crate) fn scan(
        &self,
        range: &KeyRange,
        from: Revision,
        most: usize,
        scan_limit: usize,
    ) -> Scan {
        let begin = self
            .history
            .partition_point(|change| change.revision < from);
        let mut scan = Scan {
            events: Vec::new(),
            through: self.revision,
            complete: true,
        };

        let mut last = from.previous();
        for (seen, change) in self.history.range(begin..).enumerate() {
            if change.revision > last && (scan.events.len() >= most || seen >= scan_limit) {
                scan.through = last;
                scan.complete = false;
                break;
            }

            last = change.revision;

            if range.contains(&change.key) {
                scan.events.push(self.event(change));
            }
        }

        scan
    }

    fn event(&self, change: &Change) -> FoundEvent {
        if let Some(event) = &change.event {
            return FoundEvent::Here(Event::clone(event));
        }

        let versions = self
            .keys
            .get(&change.key)
            .expect("a key is kept while a change of it is");
        let previous = versions.at(change.revision.previous());
        let previous = previous.map(|existing| self.found(&change.key, &existing));

        let (kind, kv) = match versions.at(change.revision) {
            Some(existing) => (EventKind::Put, self.found(&change.key, &existing)),
            None => (
                EventKind::Delete,
                Found::Here(deletion(
                    Bytes::copy_from_slice(&change.key),
                    change.revision,
                )),
            ),
        };

        FoundEvent::Pieces { kind, kv, previous }
    }

    /// Marks everything before `revision` as compacted.
    pub(crate) fn compact(&mut self, revision: Revision) {
        self.compacted = self.compacted.max(revision);
    }

    /// The oldest change still held.
    pub(crate) fn oldest_change(&self) -> Option<Revision> {
        self.history.front().map(|change| change.revision)
    }

    /// Removes changes up to and including `revision`, at most `most` of them, and the versions
    /// that only they needed. Returns whether there are more to remove.
    pub(crate) fn trim(&mut self, revision: Revision, most: usize) -> bool {
        for _ in 0..most {
            match self.history.front() {
                Some(change) if change.revision <= revision => {}
                _ => return false,
            }

            let change = self
                .history
                .pop_front()
                .expect("the front was just checked");
            if let Some(event) = &change.event {
                self.recent.bytes -= held(event);
                self.recent.changes -= 1;
            }

            self.drop_versions_before(&change.key, change.revision);
        }

        self.oldest_change()
            .is_some_and(|oldest| oldest <= revision)
    }

    fn drop_versions_before(&mut self, key: &[u8], revision: Revision) {
        let Some(versions) = self.keys.get_mut(key) else {
            return;
        };
        versions.drop_versions_before(revision);
        if versions.live.is_none() && versions.older.is_none() {
            self.keys.remove(key);
        }
    }

    /// The next keys of `range` as of `revision`, up to `bytes` of them, and whether these were
    /// all.
    pub(crate) fn settle(
        &self,
        range: &KeyRange,
        revision: Revision,
        bytes: usize,
    ) -> (Vec<Settled>, bool) {
        let mut settled = Vec::new();
        let mut size = 0;
        for (key, existing) in self.at(range, revision) {
            if size >= bytes {
                return (settled, false);
            }

            size += match &existing {
                Existing::Live(live) => key.len() + live.value.len(),
                Existing::Older(_, at) => at.len as usize,
            };

            settled.push(Settled {
                modified: existing.modified(),
                found: self.found(key, &existing),
            });
        }

        (settled, true)
    }

    /// The newest revision that changed a key of `range`, as far back as the history reaches.
    pub(crate) fn newest_change(&self, range: &KeyRange) -> Revision {
        let newest = |(_, versions): (&[u8], &Versions)| versions.newest();
        self.versions(range).map(newest).max().unwrap_or_default()
    }

    /// A version was copied: it is read from its new position from now on.
    pub(crate) fn moved(&mut self, key: &[u8], modified: Revision, to: Position) {
        let Some(versions) = self.keys.get_mut(key) else {
            return;
        };
        match &mut versions.live {
            Some(live) if live.modified == modified => live.at = to,
            _ => versions.moved(modified, to),
        }
    }

    pub(crate) fn add_file(&mut self, id: FileId, file: Arc<dyn File>) {
        self.files.insert(id, file);
    }

    pub(crate) fn drop_file(&mut self, id: FileId) {
        self.files.remove(&id);
    }

    fn versions<'a>(
        &'a self,
        range: &KeyRange,
    ) -> impl Iterator<Item = (&'a [u8], &'a Versions)> + use<'a> {
        let found = self.keys.range::<[u8], _>(range.bounds());
        found.map(|(key, versions)| (&**key, &**versions))
    }
}

/// A key as of some revision.
pub(crate) enum Existing<'a> {
    Live(&'a Live),
    Older(Revision, Position),
}

impl Existing<'_> {
    fn modified(&self) -> Revision {
        match self {
            Existing::Live(live) => live.modified,
            Existing::Older(modified, _) => *modified,
        }
    }
}

/// A write that became visible, with what the caller needs for its bookkeeping.
pub(crate) struct Applied {
    pub(crate) key: Bytes,
    pub(crate) old_lease: Option<LeaseId>,
    pub(crate) new_lease: Option<LeaseId>,
}

impl Live {
    pub(crate) fn kv(&self, key: Bytes) -> KeyValue {
        KeyValue {
            key,
            value: self.value.clone(),
            create_revision: self.create,
            mod_revision: self.modified,
            version: self.version,
            lease: self.lease,
        }
    }
}

impl Versions {
    fn push(&mut self, version: Version) {
        self.older.get_or_insert_default().push_back(version);
    }

    fn at(&self, revision: Revision) -> Option<Existing<'_>> {
        if let Some(live) = self.live.as_ref().filter(|live| live.modified <= revision) {
            return Some(Existing::Live(live));
        }
        let older = self.older.as_ref()?;
        let after = older.partition_point(|version| version.modified <= revision);
        let version = older.get(after.checked_sub(1)?)?;
        version.at.map(|at| Existing::Older(version.modified, at))
    }

    fn newest(&self) -> Revision {
        let live = self.live.as_ref().map(|live| live.modified);
        let older = || self.older.as_ref()?.back().map(|version| version.modified);
        live.or_else(older).unwrap_or_default()
    }

    /// Drops the versions before `revision`, and a deletion at it.
    fn drop_versions_before(&mut self, revision: Revision) {
        let Some(older) = &mut self.older else { return };
        let needless = |version: &Version| {
            version.modified < revision || version.modified == revision && version.at.is_none()
        };
        while older.front().is_some_and(needless) {
            older.pop_front();
        }
        if older.is_empty() {
            self.older = None;
        }
    }

    fn moved(&mut self, modified: Revision, to: Position) {
        let Some(older) = &mut self.older else { return };
        let position = older.partition_point(|version| version.modified < modified);
        if let Some(version) = older
            .get_mut(position)
            .filter(|version| version.modified == modified)
        {
            version.at = Some(to);
        }
    }
}

fn deletion(key: Bytes, revision: Revision) -> KeyValue {
    KeyValue {
        key,
        value: Bytes::new(),
        create_revision: Revision::ZERO,
        mod_revision: revision,
        version: 0,
        lease: None,
    }
}

/// The bytes that an event may be the last to reference.
fn held(event: &Event) -> usize {
    let previous = event.previous.as_ref().map_or(0, |kv| kv.value.len());
    size_of::<Event>() + event.kv.value.len() + previous
}

/// The size of a live key in a file.
fn weight(key: &[u8], live: &Live) -> u64 {
    const FRAME_AND_RECORD: usize = super::frame::HEADER + 1 + 8 + 8 + 8 + 4 + 4;
    (FRAME_AND_RECORD + key.len() + live.value.len()) as u64
}
