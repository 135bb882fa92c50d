//! What happens to the objects of an informer, told to one who follows.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::state::Shared;
use super::{Cached, Projection};

/// A change, told after the cache has it; the cache may be further already.
#[derive(Debug)]
pub enum Change<T> {
    /// An object is there that was not.
    Added {
        /// The object.
        object: Arc<Cached<T>>,
        /// Whether it was there before this was asked for.
        initial: bool,
    },
    /// An object changed; or, where both are the same version, it is told of once more because that
    /// was asked for.
    Updated {
        /// What it was.
        old: Arc<Cached<T>>,
        /// What it is.
        new: Arc<Cached<T>>,
    },
    /// An object is gone.
    Deleted {
        /// Its last state, or where its end was missed, the last that is known.
        object: Arc<Cached<T>>,
        /// Whether its end was seen.
        certain: bool,
    },
    /// Everything that was there at the beginning has been told.
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
    /// The object that it is about, in its newest known state.
    pub fn object(&self) -> Option<&Arc<Cached<T>>> {
        match self {
            Change::Added { object, .. } | Change::Deleted { object, .. } => Some(object),
            Change::Updated { new, .. } => Some(new),
            Change::Synced => None,
        }
    }
}

/// Changes in order, each once. One who reads slowly grows a queue of its own and holds up nobody.
pub struct Subscription<T> {
    shared: Arc<Shared<T>>,
    told: mpsc::UnboundedReceiver<Change<T>>,
    resync: Option<Interval>,
    /// What is to be told again before anything else.
    again: std::vec::IntoIter<Arc<Cached<T>>>,
}

impl<T: Projection> Subscription<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, resync: Option<Duration>) -> Subscription<T> {
        let told = shared.write().follow();
        let resync = resync.map(|every| {
            let mut ticks = interval_at(Instant::now() + every, every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });

        Subscription {
            shared,
            told,
            resync,
            again: Vec::new().into_iter(),
        }
    }

    /// The next change. It waits for ever where nothing happens.
    ///
    /// # Cancellation
    /// Nothing is lost.
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
                // What has happened comes before a repetition, so that the repetition is never
                // older.
                change = self.told.recv() => match change {
                    Some(change) => return change,
                    None => std::future::pending().await,
                },
                () = tick(self.resync.as_mut()) => self.repeat(),
            }
        }
    }

    /// Everything that is held is told again, unless news wait: those who changed will be told
    /// anyway, and the others the next time.
    fn repeat(&mut self) {
        let state = self.shared.read();
        if self.told.is_empty() {
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
