//! Checks the guarantees of a watch: ordered, unique, reliable, atomic, resumable, bookmarkable.

use super::{Violation, WatchRecord, name};
use crate::{Event, Revision, WatchItem};

/// Compares the events of a watcher with the changes. Where it resumed does not matter: all its
/// watches together must be as one.
pub(super) fn check(watch: &WatchRecord, events: &[Event]) -> Vec<Violation> {
    let inside =
        |event: &&Event| event.kv.mod_revision >= watch.from && watch.range.contains(&event.kv.key);
    let mut expected = events.iter().filter(inside).peekable();
    let mut violations = Vec::new();
    let mut last = watch.from.previous();

    let mut progress = Revision::ZERO;
    for item in &watch.items {
        match item {
            WatchItem::Progress(revision) => {
                // Everything through this revision must have been delivered by now.
                while let Some(event) = expected.next_if(|event| event.kv.mod_revision <= *revision)
                {
                    violations.push(missing(event));
                }
                progress = progress.max(*revision);
            }
            WatchItem::Events(delivered) => {
                if let Some(first) = delivered
                    .first()
                    .filter(|first| first.kv.mod_revision == last)
                {
                    violations.push(Violation::Torn {
                        revision: first.kv.mod_revision,
                    });
                }

                for event in delivered {
                    let revision = event.kv.mod_revision;
                    if revision < last {
                        violations.push(again_or_unordered(event, last, watch));
                        continue;
                    }

                    if revision <= progress {
                        violations.push(Violation::BrokenBookmark { revision, progress });
                    }

                    last = revision;

                    while let Some(event) = expected.next_if(|expected| before(expected, event)) {
                        violations.push(missing(event));
                    }

                    match expected.next_if(|expected| same_change(expected, event)) {
                        Some(expected) if expected != event => violations.push(wrong(event)),
                        Some(_) => {}
                        None if events.iter().any(|known| same_change(known, event)) => {
                            violations.push(repeated(event));
                        }
                        None => violations.push(wrong(event)),
                    }
                }
            }
        }
    }

    violations
}

/// Whether `expected` must be delivered before `event`. The order within a revision is not
/// guaranteed, but every engine keeps the order of the changes.
fn before(expected: &Event, event: &Event) -> bool {
    expected.kv.mod_revision < event.kv.mod_revision
}

fn same_change(a: &Event, b: &Event) -> bool {
    a.kv.mod_revision == b.kv.mod_revision && a.kv.key == b.kv.key && a.kind == b.kind
}

fn again_or_unordered(event: &Event, last: Revision, watch: &WatchRecord) -> Violation {
    let delivered = |item: &WatchItem| match item {
        WatchItem::Events(events) => events
            .iter()
            .filter(|delivered| same_change(delivered, event))
            .count(),
        WatchItem::Progress(_) => 0,
    };

    if watch.items.iter().map(delivered).sum::<usize>() > 1 {
        return repeated(event);
    }

    Violation::Unordered {
        revision: event.kv.mod_revision,
        last,
    }
}

fn missing(event: &Event) -> Violation {
    Violation::Missing {
        key: name(&event.kv.key),
        revision: event.kv.mod_revision,
    }
}

fn repeated(event: &Event) -> Violation {
    Violation::Repeated {
        key: name(&event.kv.key),
        revision: event.kv.mod_revision,
    }
}

fn wrong(event: &Event) -> Violation {
    Violation::WrongEvent {
        key: name(&event.kv.key),
        revision: event.kv.mod_revision,
    }
}
