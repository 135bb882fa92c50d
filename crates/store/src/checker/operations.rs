//! Whether what clients were told is possible, given what was true at each revision.

use super::timeline::Timeline;
use super::{Did, Operation, Violation, Written, name};
use crate::{KeyRange, RangeAnswer, Revision};
use bytes::Bytes;
use std::collections::BTreeMap;

pub(super) fn check(operations: &[Operation], timeline: &Timeline) -> Vec<Violation> {
    let mut violations: Vec<_> =
        operations.iter().filter_map(|operation| answer(operation, timeline)).collect();
    violations.extend(authors(operations, timeline));
    violations.extend(real_time(operations));
    violations
}

/// Whether one answer is what was true at its revision.
fn answer(operation: &Operation, timeline: &Timeline) -> Option<Violation> {
    match &operation.did {
        Did::Read { range, at, answer } => read(range, *at, answer, timeline),
        Did::Write { key, value, condition, outcome } => match outcome {
            Written::At(revision) => {
                let revision = *revision;
                let there = timeline.change(key, revision).map(|change| change.as_ref().map(|kv| &kv.value));
                let before =
                    timeline.at(key, revision.previous()).map_or(Revision::ZERO, |kv| kv.mod_revision);
                if there != Some(value.as_ref()) {
                    Some(Violation::LostWrite { key: name(key), revision })
                } else if condition.is_some_and(|condition| condition != before) {
                    Some(Violation::WrongSwap { key: name(key), revision })
                } else {
                    None
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
    differs.map(|kv| Violation::WrongAnswer { key: name(&kv.key), revision })
}

fn wrong(key: &Bytes, revision: Revision, is_wrong: bool) -> Option<Violation> {
    is_wrong.then(|| Violation::WrongAnswer { key: name(key), revision })
}

/// Every change has an author: an acknowledged write of that revision, or one whose fate was not known. Such a one
/// accounts for one change, and only for one that its condition allows.
fn authors(operations: &[Operation], timeline: &Timeline) -> Vec<Violation> {
    let mut acknowledged = BTreeMap::<(&Bytes, Revision), ()>::new();
    let mut doubtful = BTreeMap::<(&Bytes, Option<&Bytes>), Vec<Option<Revision>>>::new();
    for operation in operations {
        match &operation.did {
            Did::Write { key, outcome: Written::At(revision), .. } => {
                acknowledged.insert((key, *revision), ());
            }
            Did::Write { key, value, condition, outcome: Written::Unknown } => {
                doubtful.entry((key, value.as_ref())).or_default().push(*condition);
            }
            Did::Write { .. } | Did::Read { .. } => {}
        }
    }
    let mut violations = Vec::new();
    for (key, revision, value) in timeline.changes() {
        if acknowledged.contains_key(&(key, revision)) {
            continue; // that it is the right one was looked at before
        }
        let before = timeline.at(key, revision.previous()).map_or(Revision::ZERO, |kv| kv.mod_revision);
        let candidates = doubtful.entry((key, value)).or_default();
        let author = candidates.iter().position(|condition| condition.is_none_or(|seen| seen == before));
        match author {
            Some(author) => drop(candidates.swap_remove(author)),
            None => violations.push(Violation::StrangeChange { key: name(key), revision }),
        }
    }
    violations
}

/// Whoever asks after an answer was given is told of no older revision; and a write then gets a newer one.
fn real_time(operations: &[Operation]) -> Vec<Violation> {
    let mut answers: Vec<_> = operations.iter().filter_map(|op| Some((op.answered, told(op)?))).collect();
    answers.sort_unstable();
    // The newest revision known once all answers up to here were given.
    let mut newest = Revision::ZERO;
    for (_, revision) in &mut answers {
        newest = newest.max(*revision);
        *revision = newest;
    }
    let known_at = |moment: u64| {
        let count = answers.partition_point(|(answered, _)| *answered < moment);
        answers[..count].last().map_or(Revision::ZERO, |(_, revision)| *revision)
    };
    let stale = |operation: &Operation| {
        let known = known_at(operation.called);
        let revision = told(operation)?;
        let wrote = matches!(operation.did, Did::Write { outcome: Written::At(_), .. });
        (revision < known || wrote && revision == known).then_some(Violation::Stale { revision, known })
    };
    operations.iter().filter_map(stale).collect()
}

/// The revision of the store that an answer tells of. A read of the past tells nothing about the present.
fn told(operation: &Operation) -> Option<Revision> {
    match &operation.did {
        Did::Read { answer, .. } => Some(answer.revision),
        Did::Write { outcome, .. } => match outcome {
            Written::At(at) | Written::Nothing(at) | Written::Refused { at, .. } => Some(*at),
            Written::Unknown => None,
        },
    }
}
