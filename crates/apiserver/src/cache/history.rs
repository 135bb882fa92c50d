//! What happened to a resource, in order: a chain of segments that one writer appends to and every watcher reads.
//!
//! A watcher holds a cursor into the chain. Nobody waits for a slow one: segments live as long as somebody points at them
//! or at one before them, and the cache forgets the oldest when they have left the window.

use std::sync::{Arc, OnceLock};

use coracle_store::Revision;

use super::Entry;

const SEGMENT: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Event {
    pub change: Change,
    pub revision: Revision,
    /// The new version; of a delete, the last one, at the revision of the delete.
    pub entry: Arc<Entry>,
    pub previous: Option<Arc<Entry>>,
}

struct Segment {
    events: [OnceLock<Event>; SEGMENT],
    next: OnceLock<Arc<Segment>>,
}

impl Segment {
    fn new() -> Arc<Segment> {
        Arc::new(Segment { events: [const { OnceLock::new() }; SEGMENT], next: OnceLock::new() })
    }
}

impl Drop for Segment {
    /// A long chain ends in a loop, not in a recursion as deep as it is long.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(segment) = next {
            next = Arc::into_inner(segment).and_then(|mut segment| segment.next.take());
        }
    }
}

/// A place in the chain: what comes next has not been read.
#[derive(Clone)]
pub struct Cursor {
    segment: Arc<Segment>,
    at: usize,
}

impl Cursor {
    /// The next event, if it has happened.
    pub fn advance(&mut self) -> Option<Event> {
        if self.at == SEGMENT {
            let next = self.segment.next.get()?.clone();
            self.segment = next;
            self.at = 0;
        }
        let event = self.segment.events[self.at].get()?.clone();
        self.at += 1;
        Some(event)
    }
}

/// The writer's end, and the oldest place that is kept.
pub(super) struct History {
    tail: Cursor,
    oldest: Cursor,
    /// Everything up to here has left the window.
    forgotten: Revision,
}

impl History {
    pub(super) fn new(from: Revision) -> History {
        let start = Cursor { segment: Segment::new(), at: 0 };
        History { tail: start.clone(), oldest: start, forgotten: from }
    }

    pub(super) fn append(&mut self, event: Event) {
        if self.tail.at == SEGMENT {
            let next = Segment::new();
            let linked = self.tail.segment.next.set(next.clone());
            assert!(linked.is_ok(), "only the writer links segments");
            self.tail = Cursor { segment: next, at: 0 };
        }
        let written = self.tail.segment.events[self.tail.at].set(event);
        assert!(written.is_ok(), "only the writer fills segments");
        self.tail.at += 1;
    }

    /// A cursor before the first event after `revision`; `None`: that is no longer kept.
    pub(super) fn after(&self, revision: Revision) -> Option<Cursor> {
        if revision < self.forgotten {
            return None;
        }
        let mut cursor = self.oldest.clone();
        loop {
            let before = cursor.clone();
            match cursor.advance() {
                Some(event) if event.revision <= revision => {}
                _ => return Some(before),
            }
        }
    }

    pub(super) fn end(&self) -> Cursor {
        self.tail.clone()
    }

    pub(super) fn oldest_kept(&self) -> Revision {
        self.forgotten
    }

    /// Forgets what happened up to `revision`.
    pub(super) fn forget(&mut self, revision: Revision) {
        loop {
            let before = self.oldest.clone();
            match self.oldest.advance() {
                Some(event) if event.revision <= revision => self.forgotten = event.revision,
                _ => {
                    self.oldest = before;
                    return;
                }
            }
        }
    }
}
