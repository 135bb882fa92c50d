//! Recent events in order: a chain of segments that one writer appends to and every watcher reads.
//!
//! A watcher holds a cursor into the chain, and the writer never waits for a slow one: a watcher
//! that falls out of the window finds the chain cut behind its segment and has to list again. So a
//! reader that has stopped retains one segment and no more.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use coracle_store::Revision;
use tokio::time::{Duration, Instant};

use super::Entry;

/// So many fill a piece of memory of 2 KiB.
const SEGMENT: usize = 62;

/// A window holds at most so many events …
const MAX_EVENTS: usize = 1650 * SEGMENT;

/// … and, beyond the first few, at most so many bytes of objects, and none older than this: a
/// watcher gets a bookmark every minute, and resumes from there.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const FRESH: Duration = Duration::from_secs(75);
const FEW_EVENTS: usize = 128;

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
    /// The new version; of a delete, the last one, at the revision of the delete.
    pub entry: Arc<Entry>,
    pub previous: Option<Arc<Entry>>,
}

impl Event {
    pub fn revision(&self) -> Revision {
        self.entry.revision
    }
}

struct Segment {
    events: [OnceLock<Event>; SEGMENT],
    next: ArcSwapOption<Segment>,
    begun: Instant,
    /// The window has passed: the next events can no longer be read from here.
    cut: AtomicBool,
}

impl Segment {
    fn new() -> Arc<Segment> {
        Arc::new(Segment {
            events: [const { OnceLock::new() }; SEGMENT],
            next: ArcSwapOption::empty(),
            begun: Instant::now(),
            cut: AtomicBool::new(false),
        })
    }

    /// Releases the next segments: readers that are still here have been overtaken.
    fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.next.store(None);
    }

    fn last_revision(&self) -> Option<Revision> {
        self.events[SEGMENT - 1].get().map(Event::revision)
    }
}

impl Drop for Segment {
    /// Drops a long chain in a loop, not in a recursion as deep as the chain.
    fn drop(&mut self) {
        let mut next = self.next.swap(None);
        while let Some(segment) = next {
            next = Arc::into_inner(segment).and_then(|segment| segment.next.swap(None));
        }
    }
}

/// The reader has been overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorOvertaken;

/// A position in the chain: the events after it have not been read.
#[derive(Clone)]
pub struct Cursor {
    segment: Arc<Segment>,
    at: usize,
}

impl Cursor {
    /// The next event, if it has happened.
    pub fn advance(&mut self) -> Result<Option<&Event>, CursorOvertaken> {
        if self.at == SEGMENT {
            match self.segment.next.load_full() {
                Some(next) => {
                    *self = Cursor {
                        segment: next,
                        at: 0,
                    }
                }
                None if self.segment.cut.load(Ordering::Acquire) => return Err(CursorOvertaken),
                None => return Ok(None),
            }
        }

        match self.segment.events[self.at].get() {
            Some(event) => {
                self.at += 1;
                Ok(Some(event))
            }
            // A segment that is cut before it is full is never filled.
            None if self.segment.cut.load(Ordering::Acquire) => Err(CursorOvertaken),
            None => Ok(None),
        }
    }
}

/// The writer's end of a chain.
pub(super) struct Tail {
    end: Cursor,
    /// The segments before, as far as a reader may lag. A tail keeps none of them: readers do.
    behind: VecDeque<Weak<Segment>>,
}

impl Tail {
    pub(super) fn new() -> Tail {
        Tail {
            end: Cursor {
                segment: Segment::new(),
                at: 0,
            },
            behind: VecDeque::new(),
        }
    }

    pub(super) fn append(&mut self, event: Event) {
        if self.end.at == SEGMENT {
            let next = Segment::new();
            self.end.segment.next.store(Some(next.clone()));
            self.behind.push_back(Arc::downgrade(&self.end.segment));
            self.end = Cursor {
                segment: next,
                at: 0,
            };

            if self.behind.len() > MAX_EVENTS / SEGMENT
                && let Some(overtaken) = self
                    .behind
                    .pop_front()
                    .and_then(|segment| segment.upgrade())
            {
                overtaken.cut();
            }
        }

        let written = self.end.segment.events[self.end.at].set(event);
        assert!(written.is_ok(), "only the writer fills segments");

        self.end.at += 1;
    }

    pub(super) fn cursor(&self) -> Cursor {
        self.end.clone()
    }

    /// Nothing follows: every reader finds that it has been overtaken once it has read what there
    /// is.
    pub(super) fn end(&self) {
        self.end.segment.cut();
    }
}

/// A chain with its recent past: the window.
pub(super) struct History {
    tail: Tail,
    oldest: Cursor,
    /// Everything up to here has left the window.
    forgotten: Revision,
    events: usize,
    bytes: usize,
}

impl History {
    pub(super) fn new(from: Revision) -> History {
        let tail = Tail::new();
        let oldest = tail.cursor();
        History {
            tail,
            oldest,
            forgotten: from,
            events: 0,
            bytes: 0,
        }
    }

    pub(super) fn append(&mut self, event: Event) {
        self.events += 1;
        self.bytes += event.entry.bytes().len();
        self.tail.append(event);
        while self.events > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events > FEW_EVENTS) {
            self.drop_oldest();
        }
        // The time of the newest segment is precise enough, and costs nothing.
        self.forget_stale(self.tail.end.segment.begun);
    }

    /// Drops stale events.
    pub(super) fn forget_stale(&mut self, now: Instant) {
        while self.events > FEW_EVENTS && self.oldest_is_stale(now) {
            self.drop_oldest();
        }
    }

    fn oldest_is_stale(&self, now: Instant) -> bool {
        let oldest = &self.oldest.segment;
        // The next segment was begun after everything in this one had happened.
        now - oldest.begun > FRESH
            && oldest
                .next
                .load()
                .as_ref()
                .is_some_and(|next| now - next.begun > FRESH)
    }

    /// A cursor before the first event after `revision`; `None`: the history no longer has it.
    pub(super) fn after(&self, revision: Revision) -> Option<Cursor> {
        if revision < self.forgotten {
            return None;
        }

        let mut cursor = self.oldest.clone();
        while cursor
            .segment
            .last_revision()
            .is_some_and(|last| last <= revision)
        {
            let Some(next) = cursor.segment.next.load_full() else {
                break;
            };
            cursor = Cursor {
                segment: next,
                at: 0,
            };
        }

        loop {
            let before = cursor.clone();
            match cursor.advance() {
                Ok(Some(event)) if event.revision() <= revision => {}
                _ => return Some(before),
            }
        }
    }

    pub(super) fn end(&self) -> Cursor {
        self.tail.cursor()
    }

    /// Nothing follows; see [`Tail::end`].
    pub(super) fn close(&self) {
        self.tail.end();
    }

    pub(super) fn oldest_kept(&self) -> Revision {
        self.forgotten
    }

    /// Drops the events up to `revision`.
    pub(super) fn forget(&mut self, revision: Revision) {
        let is_next = |oldest: &Cursor| {
            let mut next = oldest.clone();
            matches!(next.advance(), Ok(Some(event)) if event.revision() <= revision)
        };
        while is_next(&self.oldest) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let behind = self.oldest.segment.clone();
        let Ok(Some(event)) = self.oldest.advance() else {
            return;
        };
        self.forgotten = event.revision();
        self.events -= 1;
        self.bytes -= event.entry.bytes().len();
        if !Arc::ptr_eq(&behind, &self.oldest.segment) {
            behind.cut();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use coracle_api::catalog::BUILTIN;

    use super::*;

    fn event(revision: u64) -> Event {
        static ENTRY: LazyLock<Entry> = LazyLock::new(|| {
            let pods = BUILTIN
                .resource("", "v1", "pods")
                .expect("pods are built in");
            let object = coracle_api::codec::json::parse(br#"{"metadata":{"name":"a","uid":"u"}}"#);
            Entry::new("a", &object.expect("JSON"), &BUILTIN, pods, Revision::FIRST)
        });

        let entry = Arc::new(ENTRY.at(Revision::new(revision)));
        Event {
            change: Change::Modified,
            entry,
            previous: None,
        }
    }

    fn history(revisions: std::ops::RangeInclusive<u64>) -> History {
        let mut history = History::new(Revision::ZERO);
        revisions.for_each(|revision| history.append(event(revision)));
        history
    }

    fn rest(mut cursor: Cursor) -> Result<Vec<u64>, CursorOvertaken> {
        let mut seen = Vec::new();
        while let Some(event) = cursor.advance()? {
            seen.push(event.revision().get());
        }
        Ok(seen)
    }

    #[test]
    fn a_cursor_shows_what_comes_after_its_revision() {
        let history = history(1..=200);
        for from in [0, 1, 63, 64, 65, 128, 199, 200] {
            let cursor = history.after(Revision::new(from)).expect("kept");
            assert_eq!(rest(cursor), Ok((from + 1..=200).collect()), "after {from}");
        }
    }

    #[test]
    fn dropped_events_cannot_be_read_and_their_readers_are_cut_off() {
        let mut history = history(1..=200);
        let slow = history.after(Revision::new(10)).expect("kept");
        history.forget(Revision::new(150));
        assert!(history.after(Revision::new(149)).is_none());
        assert_eq!(
            rest(history.after(Revision::new(150)).expect("kept")),
            Ok((151..=200).collect())
        );
        assert_eq!(rest(slow), Err(CursorOvertaken));
    }

    #[test]
    fn a_window_has_a_bound() {
        let history = history(1..=MAX_EVENTS as u64 + 10);
        assert_eq!(history.oldest_kept(), Revision::new(10));
    }

    #[tokio::test(start_paused = true)]
    async fn stale_events_are_dropped_when_new_ones_come() {
        let mut history = history(1..=5_000);
        tokio::time::advance(FRESH * 2).await;
        assert_eq!(
            history.oldest_kept(),
            Revision::ZERO,
            "nothing happens: nothing goes"
        );

        (5_001..=20_000).for_each(|revision| history.append(event(revision)));
        let kept = 20_000 - history.oldest_kept().get();
        assert!(
            (15_000..15_100).contains(&kept),
            "what is fresh is kept: {kept}"
        );

        tokio::time::advance(FRESH * 2).await;
        history.forget_stale(Instant::now());
        let kept = 20_000 - history.oldest_kept().get();
        assert!(
            (FEW_EVENTS as u64..FEW_EVENTS as u64 + 2).contains(&kept),
            "a few are kept: {kept}"
        );
    }

    #[test]
    fn readers_start_over_where_the_chain_ends() {
        let history = history(1..=70);
        let cursor = history.after(Revision::new(60)).expect("kept");
        assert_eq!(rest(cursor.clone()), Ok((61..=70).collect()));
        history.close();
        assert_eq!(rest(cursor), Err(CursorOvertaken));
    }

    #[test]
    fn a_reader_that_has_stopped_is_overtaken_though_nothing_keeps_a_window() {
        let mut tail = Tail::new();
        let stopped = tail.cursor();
        (1..=MAX_EVENTS as u64 + 3 * SEGMENT as u64)
            .for_each(|revision| tail.append(event(revision)));
        assert_eq!(rest(stopped), Err(CursorOvertaken));
    }
}
