//! Request queues, one per kind.

use std::collections::VecDeque;

use crate::request::Request;

/// The kind of a request; the number in flight is limited per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// Leases renewed together share the cost of a disk write.
    Leases,
    /// Few: pods that become ready must not delay those who create and bind them.
    Others,
}

impl QueueKind {
    /// The most requests in flight.
    pub(crate) const fn max_in_flight(self) -> usize {
        match self {
            QueueKind::Leases => 32,
            QueueKind::Others => 2,
        }
    }
}

/// Requests of one kind.
#[derive(Default)]
pub(crate) struct RequestQueue {
    pub(crate) waiting: VecDeque<Request>,
    pub(crate) in_flight: usize,
}

impl RequestQueue {
    pub(crate) fn next(&mut self, kind: QueueKind) -> Option<Request> {
        let next = if self.in_flight < kind.max_in_flight() {
            self.waiting.pop_front()
        } else {
            None
        };
        self.in_flight += usize::from(next.is_some());
        next
    }
}
