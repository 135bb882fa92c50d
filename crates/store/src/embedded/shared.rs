//! The state shared by readers, watchers and the writer.

use super::clock::Clock;
use super::config::Config;
use super::files::Files;
use super::index::Index;
use super::leases::Leases;
use super::queue::Queue;
use super::watcher::Slot;
use crate::{Revision, Unavailable};
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Lock order: the order of the fields. No lock is held across an await.
pub(crate) struct Shared {
    pub(crate) index: RwLock<Index>,
    pub(crate) leases: Mutex<Leases>,
    pub(crate) slots: Mutex<Vec<Arc<Slot>>>,
    /// Revisions of long reads in progress: history from them on is kept.
    pub(crate) pins: Mutex<BTreeMap<Revision, usize>>,
    pub(crate) queue: Queue,
    pub(crate) closed: AtomicBool,
    pub(crate) file_bytes: AtomicU64,
    pub(crate) window_bytes: AtomicU64,
    pub(crate) store: u64,
    pub(crate) config: Config,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Shared {
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().expect(UNPOISONED)
    }

    pub(crate) fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().expect(UNPOISONED)
    }

    pub(crate) fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().expect(UNPOISONED)
    }

    pub(crate) fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().expect(UNPOISONED)
    }

    pub(crate) fn pin(self: &Arc<Self>, revision: Revision) -> Pin {
        *self
            .pins
            .lock()
            .expect(UNPOISONED)
            .entry(revision)
            .or_default() += 1;
        Pin {
            shared: self.clone(),
            revision,
        }
    }

    pub(crate) fn oldest_pin(&self) -> Option<Revision> {
        self.pins.lock().expect(UNPOISONED).keys().next().copied()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// There will be no more writes: watches end, requests fail.
    pub(crate) fn shut(&self) {
        self.closed.store(true, Ordering::Release);
        self.queue.abandon();
        self.slots().iter().for_each(|slot| slot.wake());
    }

    pub(crate) fn disk_error(&self, error: &io::Error) -> Unavailable {
        let path = self.files.path();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Unavailable::DiskFull { path }
            }
            io::ErrorKind::ReadOnlyFilesystem => Unavailable::ReadOnly { path },
            _ => Unavailable::DiskFailed {
                path,
                reason: error.to_string(),
            },
        }
    }
}

/// Keeps history from a revision on until it is dropped.
pub(crate) struct Pin {
    shared: Arc<Shared>,
    pub(crate) revision: Revision,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.shared.pins.lock().expect(UNPOISONED);
        if let Some(count) = pins.get_mut(&self.revision) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.revision);
            }
        }
    }
}

pub(crate) const UNPOISONED: &str = "nothing panics while it holds the store's locks";
