//! The versions of one key: the newest in memory, older ones by their position on disk.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::embedded::frame::{self, Position};
use crate::{KeyValue, LeaseId, Revision};

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

/// All versions of a key. Without `live`, the last of `older` is its deletion.
#[derive(Default)]
pub(super) struct Versions {
    pub(super) live: Option<Live>,
    /// Oldest first.
    #[expect(
        clippy::box_collection,
        reason = "most keys have none, and a `Vec` is larger"
    )]
    pub(super) older: Option<Box<VecDeque<Version>>>,
}

/// A version that is no longer the newest.
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub(super) modified: Revision,
    /// `None`: the key was deleted.
    pub(super) at: Option<Position>,
}

/// A key as of some revision.
pub(crate) enum Existing<'a> {
    Live(&'a Live),
    Older(Revision, Position),
}

impl Existing<'_> {
    pub(super) fn modified(&self) -> Revision {
        match self {
            Existing::Live(live) => live.modified,
            Existing::Older(modified, _) => *modified,
        }
    }
}

impl Versions {
    pub(super) fn push(&mut self, version: Version) {
        self.older.get_or_insert_default().push_back(version);
    }

    pub(super) fn at(&self, revision: Revision) -> Option<Existing<'_>> {
        if let Some(live) = self.live.as_ref().filter(|live| live.modified <= revision) {
            return Some(Existing::Live(live));
        }
        let older = self.older.as_ref()?;
        let after = older.partition_point(|version| version.modified <= revision);
        let version = older.get(after.checked_sub(1)?)?;
        version.at.map(|at| Existing::Older(version.modified, at))
    }

    pub(super) fn newest(&self) -> Revision {
        let live = self.live.as_ref().map(|live| live.modified);
        let older = || self.older.as_ref()?.back().map(|version| version.modified);
        live.or_else(older).unwrap_or_default()
    }

    /// Drops the versions before `revision`, and a deletion at it.
    pub(super) fn drop_versions_before(&mut self, revision: Revision) {
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

    pub(super) fn moved(&mut self, modified: Revision, to: Position) {
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

/// The size of a live key in a file.
pub(super) fn weight(key: &[u8], live: &Live) -> u64 {
    const FRAME_AND_RECORD: usize = frame::HEADER + 1 + 8 + 8 + 8 + 4 + 4;
    (FRAME_AND_RECORD + key.len() + live.value.len()) as u64
}
