//! Objects as trees, from a server of the same process: nothing is written and read again only to
//! cross a room.
//!
//! Whoever asks puts [`TakesTrees`] among the extensions of the request, which no wire carries. A
//! server that finds it puts [`Trees`] among those of the answer: the events of the watch are left
//! there, and the body has a byte for each, so that whatever happens to it on its way happens to
//! the events. One tree serves everybody who reads the same version of an object.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::watch::WatchEvent;

/// Asks for trees. They come whole, but without `managedFields`.
#[derive(Clone, Copy, Debug)]
pub struct TakesTrees;

/// Events that have not been read yet. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Trees(Arc<Mutex<VecDeque<WatchEvent>>>);

impl Trees {
    /// Leaves an event for the reader.
    pub fn leave(&self, event: WatchEvent) {
        self.events().push_back(event);
    }

    pub(crate) fn take(&self) -> Option<WatchEvent> {
        self.events().pop_front()
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<WatchEvent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
