//! Request queues, one per kind.

use std::collections::VecDeque;

use crate::request::Request;

/// The kind of a request; the number in flight is limited per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Leases renewed together share the cost of a disk write.
    Leases,
    /// Few: pods that become ready must not delay those who create and bind them.
    Others,
}

impl Line {
    /// The most requests in flight.
    pub(crate) const fn at_most(self) -> usize {
        match self {
            Line::Leases => 32,
            Line::Others => 2,
        }
    }
}

/// Requests of one kind.
#[derive(Default)]
pub(crate) struct InLine {
    pub(crate) waiting: VecDeque<Request>,
    pub(crate) under_way: usize,
}

impl InLine {
    pub(crate) fn next(&mut self, line: Line) -> Option<Request> {
        let next = if self.under_way < line.at_most() {
            self.waiting.pop_front()
        } else {
            None
        };
        self.under_way += usize::from(next.is_some());
        next
    }
}
