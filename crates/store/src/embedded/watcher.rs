//! Watches: a cursor over the history for each, and a slot where the writer leaves word.
//!
//! The writer tells a watcher only of changes in its range. Between them the watcher is *caught
//! up*, however far the store moves on; its slot then holds no revision, and compaction cannot
//! overtake it. Once something in its range changes, the slot holds that revision until the watcher
//! has taken everything. A watcher that is so slow that compaction passes this revision is told so:
//! it never skips.

use super::index::{FoundEvent, Scan};
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

/// At most so many events in one item (more only where one revision has more).
const ITEM: usize = 1000;
/// So many changes are looked at under one hold of the index.
const GLANCE: usize = 20_000;

pub(crate) struct Slot {
    range: KeyRange,
    state: Mutex<SlotState>,
    woken: Notify,
}

#[derive(Default)]
struct SlotState {
    /// The first change that waits to be delivered; before it there is none.
    pending: Option<Revision>,
    /// The last change that the writer told of.
    told: Revision,
    progress: bool,
}

pub(crate) struct Watcher {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    /// The next revision to look at.
    cursor: Revision,
    previous: bool,
    progress_every: Option<Duration>,
    last_item: Instant,
}

enum Step {
    /// Changes of ours; or none, among many that were looked at.
    Scanned(Scan),
    Progress(Revision),
    Idle,
}

impl Slot {
    /// The writer's word that `key` changed at `revision`. Whether the watcher cares; then it must
    /// be woken once the change can be seen.
    pub(crate) fn tell(&self, key: &[u8], revision: Revision) -> bool {
        if !self.range.contains(key) {
            return false;
        }
        let mut state = self.state();
        state.pending.get_or_insert(revision);
        state.told = revision;
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
    /// Opens a watch; answers with the store's revision then.
    pub(crate) fn open(
        shared: Arc<Shared>,
        request: WatchRequest,
    ) -> Result<(Revision, Self), StoreError> {
        // While the index is held, the writer makes nothing visible: no change falls between.
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
                ITEM,
                GLANCE,
            )));
        }

        let here = index.revision();

        // Of a watch from a future revision nothing can be said before the store is there.
        if state.progress && here.next() >= self.cursor {
            state.progress = false;
            return Ok(Step::Progress(here));
        }

        Ok(Step::Idle)
    }

    /// Everything through a revision was delivered, which was the newest if `complete`. No await
    /// may come between this and returning the item.
    fn advance(&mut self, through: Revision, complete: bool) {
        let mut state = self.slot.state();
        self.cursor = self.cursor.max(through.next());
        state.pending = Some(self.cursor).filter(|_| !complete || state.told > through);
    }

    async fn resolve(&self, found: Vec<FoundEvent>) -> Result<Vec<Event>, StoreError> {
        let previous = self.previous;
        let here = found.iter().all(FoundEvent::is_here);
        let resolve = move || {
            found
                .into_iter()
                .map(|event| event.resolve(previous))
                .collect()
        };

        if here {
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

/// Runs what may read the disk where it holds nobody up.
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
