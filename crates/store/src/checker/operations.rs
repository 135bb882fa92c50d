//! Checks whether the answers to clients are possible, given the state at each revision.

use super::timeline::{Changes, Timeline};
use super::{Action, Operation, Violation, Written, name};
use crate::{KeyRange, RangeAnswer, Revision};
use bytes::Bytes;
use std::collections::BTreeMap;

pub(super) fn check(operations: &[Operation], timeline: &Timeline) -> Vec<Violation> {
    let mut violations: Vec<_> = operations
        .iter()
        .filter_map(|operation| answer(operation, timeline))
        .collect();
    violations.extend(authors(operations, timeline));
    violations.extend(real_time(operations));
    violations
}

/// Whether one answer matches the state at its revision.
fn answer(operation: &Operation, timeline: &Timeline) -> Option<Violation> {
    match &operation.action {
        Action::Read { range, at, answer } => read(range, *at, answer, timeline),
        Action::Write {
            key,
            condition,
            outcome,
            ..
        } => match outcome {
            Written::At(revision) => {
                let revision = *revision;
                let there = |key: &Bytes, value| {
                    timeline
                        .change(key, revision)
                        .map(|change| change.as_ref().map(|kv| &kv.value))
                        == Some(value)
                };

                let lost = changes(&operation.action)
                    .into_iter()
                    .find(|(key, value)| !there(key, *value));
                match lost {
                    Some((key, _)) => Some(Violation::LostWrite {
                        key: name(key),
                        revision,
                    }),
                    None if allows(*condition, key, revision, timeline) => None,
                    None => Some(Violation::WrongSwap {
                        key: name(key),
                        revision,
                    }),
                }
            }
            Written::Nothing(at) => wrong(key, *at, timeline.at(key, *at).is_some()),
            Written::Refused { found, at } => {
                let there = timeline.at(key, *at);
                let holds = *condition == Some(there.map_or(Revision::ZERO, |kv| kv.mod_revision));
                wrong(key, *at, there != found.as_ref() || holds)
            }
            Written::Unknown => None,
        },
    }
}

fn read(
    range: &KeyRange,
    at: Option<Revision>,
    answer: &RangeAnswer,
    timeline: &Timeline,
) -> Option<Violation> {
    let revision = at.unwrap_or(answer.revision);
    let there = timeline.range(range, revision);
    let differs = there.iter().find(|kv| !answer.kvs.contains(kv));
    let differs = differs.or_else(|| answer.kvs.iter().find(|kv| !there.contains(kv)));
    differs.map(|kv| Violation::WrongAnswer {
        key: name(&kv.key),
        revision,
    })
}

fn wrong(key: &Bytes, revision: Revision, is_wrong: bool) -> Option<Violation> {
    is_wrong.then(|| Violation::WrongAnswer {
        key: name(key),
        revision,
    })
}

/// What a write changes if it happens.
fn changes(action: &Action) -> Changes<'_> {
    match action {
        Action::Write {
            key, value, also, ..
        } => {
            let also = also.iter().map(|(key, value)| (key, Some(value)));
            also.chain([(key, value.as_ref())]).collect()
        }
        Action::Read { .. } => Changes::new(),
    }
}

/// Whether a condition on `key` lets a write happen at `revision`.
fn allows(
    condition: Option<Revision>,
    key: &Bytes,
    revision: Revision,
    timeline: &Timeline,
) -> bool {
    let before = || {
        timeline
            .at(key, revision.previous())
            .map_or(Revision::ZERO, |kv| kv.mod_revision)
    };
    condition.is_none_or(|seen| seen == before())
}

/// Every revision has one author: a write acknowledged with that revision, or one with unknown
/// outcome. The latter accounts for at most one revision, for all of its changes, and only if its
/// condition holds there.
fn authors(operations: &[Operation], timeline: &Timeline) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut acknowledged = BTreeMap::<Revision, Changes<'_>>::new();

    let mut doubtful = Vec::new();
    for operation in operations {
        match &operation.action {
            Action::Write {
                outcome: Written::At(revision),
                ..
            } => {
                if acknowledged
                    .insert(*revision, changes(&operation.action))
                    .is_some()
                {
                    violations.push(Violation::Shared {
                        revision: *revision,
                    });
                }
            }
            Action::Write {
                key,
                condition,
                outcome: Written::Unknown,
                ..
            } => {
                doubtful.push((changes(&operation.action), key, *condition));
            }
            Action::Write { .. } | Action::Read { .. } => {}
        }
    }

    for (revision, happened) in timeline.revisions() {
        let known = match acknowledged.get(&revision) {
            Some(asked) => *asked == happened,
            None => {
                let author = doubtful.iter().position(|(asked, key, condition)| {
                    *asked == happened && allows(*condition, key, revision, timeline)
                });
                author.map(|author| doubtful.swap_remove(author)).is_some()
            }
        };

        if !known {
            let key = happened
                .keys()
                .next()
                .map(|key| name(key))
                .unwrap_or_default();
            violations.push(Violation::StrangeChange { key, revision });
        }
    }

    violations
}

/// A request sent after an answer gets no older revision than that answer; a write gets a newer
/// one.
fn real_time(operations: &[Operation]) -> Vec<Violation> {
    let mut answers: Vec<_> = operations
        .iter()
        .filter_map(|op| Some((op.answered, reported_revision(op)?)))
        .collect();
    answers.sort_unstable();

    // The newest revision known once all answers up to here were given.
    let mut newest = Revision::ZERO;
    for (_, revision) in &mut answers {
        newest = newest.max(*revision);
        *revision = newest;
    }

    let known_at = |moment: u64| {
        let count = answers.partition_point(|(answered, _)| *answered < moment);
        answers[..count]
            .last()
            .map_or(Revision::ZERO, |(_, revision)| *revision)
    };

    let stale = |operation: &Operation| {
        let known = known_at(operation.called);
        let revision = reported_revision(operation)?;
        let wrote = matches!(
            operation.action,
            Action::Write {
                outcome: Written::At(_),
                ..
            }
        );

        (revision < known || wrote && revision == known)
            .then_some(Violation::Stale { revision, known })
    };

    operations.iter().filter_map(stale).collect()
}

/// The store's revision in an answer. A read at an old revision says nothing about the current one.
fn reported_revision(operation: &Operation) -> Option<Revision> {
    match &operation.action {
        Action::Read { answer, .. } => Some(answer.revision),
        Action::Write { outcome, .. } => match outcome {
            Written::At(at) | Written::Nothing(at) | Written::Refused { at, .. } => Some(*at),
            Written::Unknown => None,
        },
    }
}
