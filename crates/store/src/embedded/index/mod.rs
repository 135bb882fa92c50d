//! The index: every key with its versions, and the changes in order. In memory, without I/O; all
//! reads go through it.
//!
//! The newest value of a live key is in memory; of older versions only their position on disk. A
//! change enters through [`Index::apply`] once it is durable, so readers see durable writes only.
//! History is removed through [`Index::trim`].

mod history;
mod versions;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use self::history::{Change, Recent};
pub(crate) use self::history::{ReadEvent, Scan};
pub(crate) use self::versions::{Existing, Live};
use self::versions::{Version, Versions, weight};
use super::files::File;
use super::frame::{FileId, Position};
use crate::{KeyRange, KeyValue, LeaseId, Revision, StoreError, Thin};

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

/// A write of one key, ready to become visible.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Bytes,
    /// `None` deletes.
    pub(crate) live: Option<Live>,
}

/// A version: the value, or its position on disk.
#[derive(Clone)]
pub(crate) enum ReadVersion {
    InMemory(KeyValue),
    OnDisk {
        key: Bytes,
        modified: Revision,
        at: Position,
        file: Arc<dyn File>,
    },
}

/// A key to be written to a part file.
pub(crate) struct Settled {
    pub(crate) found: ReadVersion,
    pub(crate) modified: Revision,
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

    pub(crate) fn found(&self, key: &[u8], existing: &Existing<'_>) -> ReadVersion {
        let key = Bytes::copy_from_slice(key);
        match *existing {
            Existing::Live(live) => ReadVersion::InMemory(live.kv(key)),
            Existing::Older(modified, at) => {
                let file = self
                    .files
                    .get(&at.file)
                    .expect("a file is kept while it contains a readable version");

                ReadVersion::OnDisk {
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

    /// Marks everything before `revision` as compacted.
    pub(crate) fn compact(&mut self, revision: Revision) {
        self.compacted = self.compacted.max(revision);
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

/// A write that became visible, with what the caller needs for its bookkeeping.
pub(crate) struct Applied {
    pub(crate) key: Bytes,
    pub(crate) old_lease: Option<LeaseId>,
    pub(crate) new_lease: Option<LeaseId>,
}
