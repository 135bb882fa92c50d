//! The changes of an informer's objects, for one subscriber.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::state::Shared;
use super::{Cached, Projection};

/// A change, delivered after the cache has it; the cache may be newer already.
#[derive(Debug)]
pub enum Change<T> {
    /// An object was added.
    Added {
        /// The object.
        object: Arc<Cached<T>>,
        /// Whether it existed before the subscription.
        initial: bool,
    },
    /// An object was updated; or, if both have the same version, it is repeated because of a
    /// resync.
    Updated {
        /// The old object.
        old: Arc<Cached<T>>,
        /// The new object.
        new: Arc<Cached<T>>,
    },
    /// An object was deleted.
    Deleted {
        /// Its last state, or if the deletion was missed, the last known one.
        object: Arc<Cached<T>>,
        /// Whether the deletion was observed.
        certain: bool,
    },
    /// The initial objects are complete.
    Synced,
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Change<T> {
        match self {
            Change::Added { object, initial } => Change::Added {
                object: object.clone(),
                initial: *initial,
            },
            Change::Updated { old, new } => Change::Updated {
                old: old.clone(),
                new: new.clone(),
            },
            Change::Deleted { object, certain } => Change::Deleted {
                object: object.clone(),
                certain: *certain,
            },
            Change::Synced => Change::Synced,
        }
    }
}

impl<T> Change<T> {
    /// The object of the change, in its newest known state.
    pub fn object(&self) -> Option<&Arc<Cached<T>>> {
        match self {
            Change::Added { object, .. } | Change::Deleted { object, .. } => Some(object),
            Change::Updated { new, .. } => Some(new),
            Change::Synced => None,
        }
    }
}

/// Changes in order, each once. A slow reader has a growing queue of its own and delays no other.
pub struct Subscription<T> {
    shared: Arc<Shared<T>>,
    changes: mpsc::UnboundedReceiver<Change<T>>,
    resync: Option<Interval>,
    /// Objects to be repeated.
    again: std::vec::IntoIter<Arc<Cached<T>>>,
}

impl<T: Projection> Subscription<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, resync: Option<Duration>) -> Subscription<T> {
        let changes = shared.write().follow();
        let resync = resync.map(|every| {
            let mut ticks = interval_at(Instant::now() + every, every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });

        Subscription {
            shared,
            changes,
            resync,
            again: Vec::new().into_iter(),
        }
    }

    /// Waits for the next change.
    ///
    /// # Cancellation
    /// Cancel-safe.
    pub async fn next(&mut self) -> Change<T> {
        loop {
            if let Some(object) = self.again.next() {
                return Change::Updated {
                    old: object.clone(),
                    new: object,
                };
            }

            tokio::select! {
                biased;
                // New changes come before a repetition, so that the repetition is never older.
                change = self.changes.recv() => match change {
                    Some(change) => return change,
                    None => std::future::pending().await,
                },
                () = tick(self.resync.as_mut()) => self.repeat(),
            }
        }
    }

    /// Repeats all objects unless changes are waiting: then the repetition is skipped until the
    /// next interval.
    fn repeat(&mut self) {
        let state = self.shared.read();
        if self.changes.is_empty() {
            self.again = state
                .objects
                .values()
                .cloned()
                .collect::<Vec<_>>()
                .into_iter();
        }
    }
}

async fn tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}
