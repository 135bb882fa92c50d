//! Requests that stand in line, each kind in its own.

use std::collections::VecDeque;

use crate::request::Request;

/// Requests of one kind are under way together, up to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Those of one moment are to share what a write to the disk costs.
    Leases,
    /// Few: pods that become ready are not to crowd out those who make and bind them.
    Others,
}

impl Line {
    /// How many are under way at once.
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
