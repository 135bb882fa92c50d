//! The changes in order: what a write adds, what watchers read, what a trim removes.

use bytes::Bytes;

use super::versions::{Live, Version, Versions};
use super::{Index, Key, ReadVersion};
use crate::{Event, EventKind, KeyRange, KeyValue, Revision};

/// The history's capacity grows by an eighth, and by at least this many changes.
const LEAST_GROWTH: usize = 1024;

pub(super) struct Change {
    revision: Revision,
    key: Key,
    /// The whole event, while it is one of the most recent.
    event: Option<Box<Event>>,
}

/// How many of the newest changes still hold their event, and the size of those.
#[derive(Default)]
pub(super) struct Recent {
    changes: usize,
    bytes: usize,
    limit: usize,
}

/// A change for a watcher.
pub(crate) enum ReadEvent {
    InMemory(Event),
    Parts {
        kind: EventKind,
        kv: ReadVersion,
        previous: Option<ReadVersion>,
    },
}

/// Changes in order, up to and including a revision.
pub(crate) struct Scan {
    pub(crate) events: Vec<ReadEvent>,
    pub(crate) through: Revision,
    /// Whether that revision is the current one.
    pub(crate) complete: bool,
}

impl Index {
    /// The size of the history in memory: its changes, the versions they superseded, and the values
    /// of recent events.
    pub(crate) fn history_bytes(&self) -> usize {
        self.history.len() * (size_of::<Change>() + size_of::<Version>()) + self.recent.bytes
    }

    /// Keeps the events of recent changes in memory from now on, up to this many bytes.
    pub(crate) fn keep_recent(&mut self, bytes: usize) {
        self.recent.limit = bytes;
    }

    pub(super) fn record_change(
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

    fn event(&self, change: &Change) -> ReadEvent {
        if let Some(event) = &change.event {
            return ReadEvent::InMemory(Event::clone(event));
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
                ReadVersion::InMemory(deletion(
                    Bytes::copy_from_slice(&change.key),
                    change.revision,
                )),
            ),
        };

        ReadEvent::Parts { kind, kv, previous }
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

    /// The newest revision that changed a key of `range`, as far back as the history reaches.
    pub(crate) fn newest_change(&self, range: &KeyRange) -> Revision {
        let newest = |(_, versions): (&[u8], &Versions)| versions.newest();
        self.versions(range).map(newest).max().unwrap_or_default()
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
