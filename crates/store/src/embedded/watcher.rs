//! Watches: a cursor over the history for each, and a slot that the writer updates.
//!
//! The writer notifies a watcher only of changes in its range. Between them the watcher is *caught
//! up*, however far the store moves on; its slot then has no revision, and compaction cannot
//! overtake it. Once a key in its range changes, the slot has that revision until the watcher has
//! read everything. A watcher so slow that compaction passes this revision gets an error: it never
//! skips an event.

use super::index::{ReadEvent, Scan};
use super::shared::{Shared, UNPOISONED};
use crate::{
    Event, KeyRange, Revision, StoreError, Unavailable, WatchItem, WatchRequest, WatchSource,
};
use async_trait::async_trait;
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// The maximum number of events in one item (more only if one revision has more).
const MAX_EVENTS: usize = 1000;
/// How many changes are examined under one hold of the index lock.
const SCAN_LIMIT: usize = 20_000;

pub(crate) struct Slot {
    range: KeyRange,
    state: Mutex<SlotState>,
    woken: Notify,
}

#[derive(Default)]
struct SlotState {
    /// The first change that waits to be delivered; `None` if there is none.
    pending: Option<Revision>,
    /// The last change that the writer reported.
    reported: Revision,
    progress: bool,
}

pub(crate) struct Watcher {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    /// The next revision to deliver.
    cursor: Revision,
    previous: bool,
    progress_every: Option<Duration>,
    last_item: Instant,
}

enum Step {
    /// Changes in our range; or none, among the many that were examined.
    Scanned(Scan),
    Progress(Revision),
    Idle,
}

impl Slot {
    /// Called by the writer: `key` changed at `revision`. Returns whether the watcher's range
    /// contains the key; then it must be woken once the change is visible.
    pub(crate) fn notify_change(&self, key: &[u8], revision: Revision) -> bool {
        if !self.range.contains(key) {
            return false;
        }
        let mut state = self.state();
        state.pending.get_or_insert(revision);
        state.reported = revision;
        true
    }

    pub(crate) fn request_progress(&self) {
        self.state().progress = true;
        self.wake();
    }

    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().expect(UNPOISONED)
    }
}

impl Watcher {
    /// Opens a watch and returns it with the store's revision.
    pub(crate) fn open(
        shared: Arc<Shared>,
        request: WatchRequest,
    ) -> Result<(Revision, Self), StoreError> {
        // While the index lock is held, the writer publishes nothing, so no change is missed.
        let index = shared.index();
        let current = index.revision();
        let first = request.from.unwrap_or(current.next());
        index.uncompacted(first)?;
        let pending = Some(first).filter(|first| *first <= current);
        let state = Mutex::new(SlotState {
            pending,
            ..SlotState::default()
        });

        let slot = Arc::new(Slot {
            range: request.range,
            state,
            woken: Notify::new(),
        });
        shared.slots().push(slot.clone());

        drop(index);

        let watcher = Watcher {
            slot,
            cursor: first,
            previous: request.previous,
            progress_every: request.progress_every,
            last_item: Instant::now(),
            shared,
        };

        Ok((current, watcher))
    }

    fn step(&self) -> Result<Step, StoreError> {
        if self.shared.is_closed() {
            return Err(Unavailable::Closed.into());
        }

        let index = self.shared.index();
        let mut state = self.slot.state();
        if let Some(pending) = state.pending {
            let from = pending.max(self.cursor);
            index.uncompacted(from)?;
            return Ok(Step::Scanned(index.scan(
                &self.slot.range,
                from,
                MAX_EVENTS,
                SCAN_LIMIT,
            )));
        }

        let here = index.revision();

        // A watch from a future revision has no progress before the store is there.
        if state.progress && here.next() >= self.cursor {
            state.progress = false;
            return Ok(Step::Progress(here));
        }

        Ok(Step::Idle)
    }

    /// Everything through a revision was delivered, which was the current one if `complete`. There
    /// must be no await between this and returning the item.
    fn advance(&mut self, through: Revision, complete: bool) {
        let mut state = self.slot.state();
        self.cursor = self.cursor.max(through.next());
        state.pending = Some(self.cursor).filter(|_| !complete || state.reported > through);
    }

    async fn resolve(&self, found: Vec<ReadEvent>) -> Result<Vec<Event>, StoreError> {
        let previous = self.previous;
        let in_memory = found.iter().all(ReadEvent::is_in_memory);
        let resolve = move || {
            found
                .into_iter()
                .map(|event| event.resolve(previous))
                .collect()
        };

        if in_memory {
            resolve()
        } else {
            resolve_all(&self.shared, resolve).await
        }
    }

    async fn wait(&self) {
        let Some(period) = self.progress_every else {
            return self.slot.woken.notified().await;
        };
        tokio::select! {
            biased;
            () = self.slot.woken.notified() => {}
            () = tokio::time::sleep_until(self.last_item + period) => self.slot.request_progress(),
        }
    }
}

/// Runs on a blocking thread what may read from disk.
pub(crate) async fn resolve_all<T: Send + 'static>(
    shared: &Shared,
    resolve: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    if !shared.files.reads_may_block() {
        return resolve();
    }
    match tokio::task::spawn_blocking(resolve).await {
        Ok(resolved) => resolved,
        Err(_) => Err(Unavailable::Closed.into()), // the runtime is shutting down
    }
}

#[async_trait]
impl WatchSource for Watcher {
    async fn next(&mut self) -> Result<WatchItem, StoreError> {
        loop {
            match self.step()? {
                Step::Scanned(Scan {
                    events,
                    through,
                    complete,
                }) => {
                    let events = self.resolve(events).await?;
                    self.advance(through, complete);
                    if !events.is_empty() {
                        self.last_item = Instant::now();
                        return Ok(WatchItem::Events(events));
                    }
                    tokio::task::yield_now().await;
                }
                Step::Progress(revision) => {
                    self.last_item = Instant::now();
                    return Ok(WatchItem::Progress(revision));
                }
                Step::Idle => self.wait().await,
            }
        }
    }

    fn request_progress(&mut self) {
        self.slot.request_progress();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared
            .slots()
            .retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}
