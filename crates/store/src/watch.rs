//! Watching: every change of a range of keys, in order, from a revision on.

use crate::{KeyRange, KeyValue, Revision, StoreError};
use async_trait::async_trait;
use std::{fmt, time::Duration};

/// Asks for the changes of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    pub range: KeyRange,
    /// The first revision whose changes are wanted, which may lie in the future; `None` begins
    /// after the newest.
    pub from: Option<Revision>,
    /// Events carry what the key held before.
    pub previous: bool,
    /// Send [`WatchItem::Progress`] unasked whenever nothing else was sent for so long.
    pub progress_every: Option<Duration>,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// The key as written. For a deletion: the key and, as its mod revision, the revision of the
    /// deletion.
    pub kv: KeyValue,
    /// What the key held before, if that was asked for and the key existed.
    pub previous: Option<KeyValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Put,
    Delete,
}

/// What a watch has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// Changes in the order they were made, at least one. All changes of one revision are in one
    /// item.
    Events(Vec<Event>),
    /// Every change up to and including this revision has been delivered.
    Progress(Revision),
}

/// An open watch; dropping it ends it.
///
/// # Guarantees
/// Ordered: revisions never go down. Unique: no event comes twice. Reliable: no event is left out;
/// a watch that cannot keep this ends with an error. Atomic: one revision's events come in one
/// item. Resumable: a watch from the revision after the last one seen goes on where this one ended.
/// Bookmarkable: after `Progress(r)` no event at or before `r` follows, and none at or before `r`
/// is outstanding.
pub struct Watch {
    created_at: Revision,
    source: Box<dyn WatchSource>,
}

/// The engine's side of a watch.
#[async_trait]
pub trait WatchSource: Send {
    /// See [`Watch::next`]. Must be safe to drop at any await without losing or repeating an item.
    async fn next(&mut self) -> Result<WatchItem, StoreError>;

    /// See [`Watch::request_progress`].
    fn request_progress(&mut self);
}

impl WatchRequest {
    /// The changes of `range` after the newest revision, without previous values.
    pub fn new(range: KeyRange) -> Self {
        WatchRequest {
            range,
            from: None,
            previous: false,
            progress_every: None,
        }
    }

    #[must_use]
    pub fn from(mut self, first: Revision) -> Self {
        self.from = Some(first);
        self
    }

    #[must_use]
    pub fn with_previous(mut self) -> Self {
        self.previous = true;
        self
    }

    #[must_use]
    pub fn progress_every(mut self, period: Duration) -> Self {
        self.progress_every = Some(period);
        self
    }
}

impl Watch {
    pub fn new(created_at: Revision, source: Box<dyn WatchSource>) -> Self {
        Watch { created_at, source }
    }

    /// The store's revision when the watch was opened. A watch without `from` delivers what comes
    /// after it.
    pub fn created_at(&self) -> Revision {
        self.created_at
    }

    /// The next item; waits for one.
    ///
    /// # Cancellation
    /// Dropping the future loses and repeats nothing.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when the watch fell behind the compaction, or began there; after
    /// an error the watch is over and gives the same kind of error again.
    pub async fn next(&mut self) -> Result<WatchItem, StoreError> {
        self.source.next().await
    }

    /// Asks for one [`WatchItem::Progress`], sent once everything up to the store's revision has
    /// been delivered.
    pub fn request_progress(&mut self) {
        self.source.request_progress();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}
