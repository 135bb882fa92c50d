//! Objects as trees from a server in the same process, without serialization.
//!
//! The client puts [`TakesTrees`] into the extensions of the request, which are not sent over a
//! wire. A server that supports it puts [`Trees`] into the extensions of the answer: the events of
//! the watch are queued there, and the body has one byte for each, so that the events follow the
//! flow of the body. One tree is shared by all readers of the same version of an object.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

use coracle_base::sync::Mutex;

use crate::watch::WatchEvent;

/// Requests trees. They are complete except for `managedFields`.
#[derive(Clone, Copy, Debug)]
pub struct TakesTrees;

/// Events that were not read yet. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Trees(Arc<Mutex<VecDeque<WatchEvent>>>);

impl Trees {
    /// Queues an event for the reader.
    pub fn leave(&self, event: WatchEvent) {
        self.events().push_back(event);
    }

    pub(crate) fn take(&self) -> Option<WatchEvent> {
        self.events().pop_front()
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<WatchEvent>> {
        self.0.lock()
    }
}
