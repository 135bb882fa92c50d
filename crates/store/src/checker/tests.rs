//! Tests of the checker: each plants a bug in a consistent history and expects it to be found.

use super::{Action, History, Operation, Traffic, Violation, WatchRecord, Written, check};
use crate::embedded::{Config, Embedded, SystemClock, files::SimulatedDisk};
use crate::{EventKind, Revision, WatchItem};
use std::{sync::Arc, time::Duration};

/// A recorded, consistent history.
async fn recorded() -> History {
    let files = Arc::new(SimulatedDisk::default().files());
    let store = Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap();
    let traffic = Traffic {
        clients: 4,
        lasts: Duration::from_millis(600),
        rest: Duration::from_micros(500),
        watchers: 2,
        seed: 7,
    };
    traffic.run(Arc::new(store)).await
}

/// Plants a bug and checks that it is found.
async fn check_planted(plant: impl Fn(&mut History), caught: impl Fn(&Violation) -> bool) {
    let mut history = recorded().await;
    assert_eq!(check(&history), [], "consistent before");
    plant(&mut history);
    let violations = check(&history);
    assert!(violations.iter().any(caught), "{violations:?}");
}

/// Plants a bug in the first watch.
async fn check_watch(plant: impl Fn(&mut WatchRecord), caught: impl Fn(&Violation) -> bool) {
    check_planted(|history| plant(&mut history.watches[0]), caught).await;
}

/// An acknowledged put of some client.
fn some_write(history: &mut History) -> &mut Operation {
    let put = |op: &&mut Operation| {
        matches!(
            op.action,
            Action::Write {
                value: Some(_),
                condition: None,
                outcome: Written::At(_),
                ..
            }
        )
    };

    let count = history.operations.len() / 2;
    history.operations.iter_mut().skip(count).find(put).unwrap()
}

/// The time of the last answer.
fn end_of(history: &History) -> u64 {
    history
        .operations
        .iter()
        .map(|op| op.answered)
        .max()
        .unwrap()
}

fn revision_of(operation: &Operation) -> Revision {
    match operation.action {
        Action::Write {
            outcome: Written::At(revision),
            ..
        } => revision,
        _ => panic!("not a write"),
    }
}

/// The first item with events, after the beginning.
fn some_events(watch: &WatchRecord) -> usize {
    watch
        .items
        .iter()
        .skip(3)
        .position(|item| matches!(item, WatchItem::Events(_)))
        .unwrap()
        + 3
}

#[tokio::test]
async fn traffic_on_a_correct_store_is_consistent_and_not_empty() {
    let history = recorded().await;
    assert_eq!(check(&history), []);
    assert!(history.events.len() > 100, "{}", history.events.len());
    assert!(
        history
            .events
            .iter()
            .any(|event| event.kind == EventKind::Delete)
    );
    assert!(history.watches.iter().any(|watch| watch.items.len() > 50));
}

#[tokio::test]
async fn a_lost_write_is_caught() {
    check_planted(
        |history| {
            let lost = revision_of(some_write(history));
            history.events.retain(|event| event.kv.mod_revision != lost);
        },
        |violation| matches!(violation, Violation::LostWrite { .. }),
    )
    .await;
}

#[tokio::test]
async fn a_write_that_happens_twice_is_caught() {
    check_planted(
        |history| {
            // The client got no answer, and the store did it again much later.
            let mut again = history.events[3].clone();
            again.kv.mod_revision = history.events.last().unwrap().kv.mod_revision.next();
            history.events.push(again);
        },
        |violation| matches!(violation, Violation::StrangeChange { .. }),
    )
    .await;
}

#[tokio::test]
async fn a_swap_that_overwrites_a_change_it_did_not_see_is_caught() {
    check_planted(
        |history| match &mut some_write(history).action {
            Action::Write { condition, .. } => *condition = Some(Revision::new(1)),
            Action::Read { .. } => {}
        },
        |violation| matches!(violation, Violation::WrongSwap { .. }),
    )
    .await;
}

#[tokio::test]
async fn a_stale_read_is_caught() {
    check_planted(
        |history| {
            // The answer of an earlier read is given again to a later request.
            let end = end_of(history);
            let reads = history
                .operations
                .iter()
                .filter(|op| matches!(op.action, Action::Read { at: None, .. }));

            let old = reads.min_by_key(|op| op.answered).unwrap();
            let stale = Operation {
                called: end + 1,
                answered: end + 2,
                action: old.action.clone(),
            };
            history.operations.push(stale);
        },
        |violation| matches!(violation, Violation::Stale { .. }),
    )
    .await;
}

#[tokio::test]
async fn a_read_that_mixes_two_revisions_is_caught() {
    check_planted(
        |history| {
            let read = history
                .operations
                .iter_mut()
                .rev()
                .find_map(|op| match &mut op.action {
                    Action::Read {
                        answer, at: None, ..
                    } if !answer.kvs.is_empty() => Some(answer),
                    _ => None,
                });
            read.unwrap().kvs[0].value = "older".into();
        },
        |violation| matches!(violation, Violation::WrongAnswer { .. }),
    )
    .await;
}

#[tokio::test]
async fn a_revision_that_goes_backwards_is_caught() {
    check_planted(
        |history| {
            let end = end_of(history);
            let write = some_write(history).clone();
            history.operations.push(Operation {
                called: end + 1,
                answered: end + 2,
                ..write
            });
        },
        |violation| matches!(violation, Violation::Stale { .. }),
    )
    .await;
}

#[tokio::test]
async fn an_event_delivered_twice_is_caught() {
    check_watch(
        |watch| {
            let position = some_events(watch);
            let again = watch.items[position].clone();
            let later = watch.items.len() - 1;
            watch.items.insert(later, again);
        },
        |violation| matches!(violation, Violation::Repeated { .. }),
    )
    .await;
}

#[tokio::test]
async fn a_gap_after_resuming_is_caught() {
    check_watch(
        |watch| drop(watch.items.remove(some_events(watch))),
        |violation| matches!(violation, Violation::Missing { .. }),
    )
    .await;
}

#[tokio::test]
async fn events_out_of_order_are_caught() {
    check_watch(
        |watch| {
            let first = some_events(watch);
            let second = watch.items[first + 1..]
                .iter()
                .position(|item| matches!(item, WatchItem::Events(_)));
            watch.items.swap(first, first + 1 + second.unwrap());
        },
        |violation| {
            matches!(
                violation,
                Violation::Unordered { .. } | Violation::Missing { .. }
            )
        },
    )
    .await;
}

#[tokio::test]
async fn a_revision_delivered_in_two_parts_is_caught() {
    check_watch(
        |watch| {
            let (item, position) = inside_a_revision(&watch.items);
            let WatchItem::Events(events) = &mut watch.items[item] else {
                panic!("events were found there")
            };
            let rest = events.split_off(position);
            watch.items.insert(item + 1, WatchItem::Events(rest));
        },
        |violation| matches!(violation, Violation::Torn { .. }),
    )
    .await;
}

/// An item and a position in it that is neither the first nor the last of its revision.
fn inside_a_revision(items: &[WatchItem]) -> (usize, usize) {
    let position = |(item, found): (usize, &WatchItem)| match found {
        WatchItem::Events(events) => {
            let pair = events
                .windows(2)
                .position(|pair| pair[0].kv.mod_revision == pair[1].kv.mod_revision)?;
            Some((item, pair + 1))
        }
        WatchItem::Progress(_) => None,
    };
    items.iter().enumerate().find_map(position).unwrap()
}

#[tokio::test]
async fn half_of_a_transaction_is_caught() {
    let halved = |history: &mut History| {
        let revision = |position: usize| history.events[position].kv.mod_revision;
        let position = (1..history.events.len())
            .find(|position| revision(*position) == revision(*position - 1))
            .unwrap();
        (revision(position), history.events.remove(position).kv.key)
    };

    let caught = |violation: &Violation| matches!(violation, Violation::LostWrite { .. });
    check_planted(|history| drop(halved(history)), caught).await;

    // The outcome is unknown to its author: either all of it happened or nothing.
    let doubted = |history: &mut History| {
        let (revision, _) = halved(history);
        for operation in &mut history.operations {
            if let Action::Write { outcome, .. } = &mut operation.action
                && matches!(outcome, Written::At(at) if *at == revision)
            {
                *outcome = Written::Unknown;
            }
        }
    };

    let caught = |violation: &Violation| matches!(violation, Violation::StrangeChange { .. });
    check_planted(doubted, caught).await;
}

#[tokio::test]
async fn two_writes_acknowledged_with_one_revision_are_caught() {
    check_planted(
        |history| {
            let mut again = some_write(history).clone();
            if let Action::Write { also, .. } = &mut again.action {
                also.clear();
            }
            history.operations.push(again);
        },
        |violation| matches!(violation, Violation::Shared { .. }),
    )
    .await;
}

#[tokio::test]
async fn an_event_without_its_previous_value_is_caught() {
    check_watch(
        |watch| {
            let events = watch.items.iter_mut().filter_map(|item| match item {
                WatchItem::Events(events) => {
                    events.iter_mut().find(|event| event.previous.is_some())
                }
                WatchItem::Progress(_) => None,
            });
            events.last().unwrap().previous = None;
        },
        |violation| matches!(violation, Violation::WrongEvent { .. }),
    )
    .await;
}

#[tokio::test]
async fn an_event_with_another_value_is_caught() {
    check_watch(
        |watch| {
            let position = some_events(watch);
            if let WatchItem::Events(events) = &mut watch.items[position] {
                events[0].kv.value = "another".into();
            }
        },
        |violation| matches!(violation, Violation::WrongEvent { .. }),
    )
    .await;
}

#[tokio::test]
async fn progress_before_the_events_it_covers_is_caught() {
    check_watch(
        |watch| {
            let last = watch.items.iter().rev().find_map(|item| match item {
                WatchItem::Events(events) => Some(events[0].kv.mod_revision),
                WatchItem::Progress(_) => None,
            });
            watch.items.insert(2, WatchItem::Progress(last.unwrap()));
        },
        |violation| matches!(violation, Violation::BrokenBookmark { .. }),
    )
    .await;
}
