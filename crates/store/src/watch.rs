//! Watches: every change in a range of keys, in order, from a given revision.

use crate::{KeyRange, KeyValue, Revision, StoreError};
use async_trait::async_trait;
use std::{fmt, time::Duration};

/// A request for the changes in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    pub range: KeyRange,
    /// The first revision whose changes are sent, which may be in the future; `None` starts after
    /// the current one.
    pub from: Option<Revision>,
    /// Events carry the key's previous state.
    pub previous: bool,
    /// Send [`WatchItem::Progress`] when nothing else was sent for this long.
    pub progress_every: Option<Duration>,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// The key as written. For a deletion: the key and, as its mod revision, the revision of the
    /// deletion.
    pub kv: KeyValue,
    /// The key's previous state, if requested and if the key existed.
    pub previous: Option<KeyValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Put,
    Delete,
}

/// An item of a watch.
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
/// Ordered: revisions never decrease. Unique: no event comes twice. Reliable: no event is left out;
/// a watch that cannot guarantee this ends with an error. Atomic: the events of one revision come
/// in one item. Resumable: a watch from the revision after the last one seen continues where this
/// one ended. Bookmarkable: after `Progress(r)` no event at or before `r` follows, and none at or
/// before `r` is outstanding.
pub struct Watch {
    created_at: Revision,
    source: Box<dyn WatchSource>,
}

/// The engine's side of a watch.
#[async_trait]
pub trait WatchSource: Send {
    /// See [`Watch::next`]. Must be cancel-safe: no item is lost or repeated.
    async fn next(&mut self) -> Result<WatchItem, StoreError>;

    /// See [`Watch::request_progress`].
    fn request_progress(&mut self);
}

impl WatchRequest {
    /// The changes of `range` after the current revision, without previous state.
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

    /// Waits for the next item.
    ///
    /// # Cancellation
    /// Dropping the future loses and repeats nothing.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] if the watch starts at or has fallen behind a compacted revision;
    /// after an error the watch has ended and returns the same kind of error again.
    pub async fn next(&mut self) -> Result<WatchItem, StoreError> {
        self.source.next().await
    }

    /// Requests one [`WatchItem::Progress`], sent once everything up to the store's revision has
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
