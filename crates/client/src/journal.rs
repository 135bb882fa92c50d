//! The journal of stages: what happened to an object, when, by whom, and what came of it.
//!
//! Every part of the house leaves a small record at each stage that it takes an object through;
//! `coracle why` reads them back. It is kept in memory and bounded: of each object the newest
//! records, and of all objects those last heard of.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use coracle_api::Text;
use coracle_api::time::Timestamp;

/// Records kept of one object.
const STAGES: usize = 64;
/// Objects of which anything is kept.
const OBJECTS: usize = 8192;

/// One stage of an object's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// When it ended.
    pub when: Timestamp,
    /// Who did it: `replicaset-controller`.
    pub who: &'static str,
    /// What was done: `reconcile`.
    pub what: &'static str,
    /// What came of it, for people; empty: it went well and there is no more to say.
    pub outcome: String,
}

/// The records of one process. Clones are the same journal.
#[derive(Clone, Default)]
pub struct Journal {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    objects: BTreeMap<Text, Object>,
    /// Objects by when they were last heard of.
    heard: BTreeMap<u64, Text>,
    counted: u64,
}

struct Object {
    stages: VecDeque<Stage>,
    heard: u64,
}

impl Journal {
    /// An empty journal.
    pub fn new() -> Journal {
        Journal::default()
    }

    /// Notes a stage of an object. What repeats the last one only changes its time.
    pub fn note(&self, uid: &str, stage: Stage) {
        if uid.is_empty() {
            return;
        }

        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        kept.counted += 1;

        let now = kept.counted;
        let object = kept
            .objects
            .entry(Text::new(uid))
            .or_insert_with(|| Object {
                stages: VecDeque::new(),
                heard: now,
            });
        kept.heard.remove(&object.heard);

        kept.heard.insert(now, Text::new(uid));
        object.heard = now;

        match object.stages.back_mut() {
            Some(last)
                if (last.who, last.what, &last.outcome)
                    == (stage.who, stage.what, &stage.outcome) =>
            {
                last.when = stage.when;
            }
            _ => object.stages.push_back(stage),
        }

        if object.stages.len() > STAGES {
            object.stages.pop_front();
        }

        if kept.objects.len() > OBJECTS
            && let Some((_, oldest)) = kept.heard.pop_first()
        {
            kept.objects.remove(&oldest);
        }
    }

    /// What is known of an object, the oldest first.
    pub fn of(&self, uid: &str) -> Vec<Stage> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.objects
            .get(uid)
            .map(|object| object.stages.iter().cloned().collect())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: i64, outcome: &str) -> Stage {
        let when = Timestamp::from_unix(seconds, 0);
        Stage {
            when,
            who: "tester",
            what: "try",
            outcome: outcome.to_string(),
        }
    }

    #[test]
    fn the_newest_records_of_the_objects_last_heard_of_are_kept() {
        let journal = Journal::new();
        for index in 0..100 {
            journal.note("a", stage(index, &index.to_string()));
        }

        assert_eq!(journal.of("a").len(), STAGES);
        assert_eq!(journal.of("a").last().unwrap().outcome, "99");

        for index in 0..OBJECTS {
            journal.note(&format!("u{index}"), stage(0, ""));
            journal.note("a", stage(0, "kept alive"));
        }

        assert!(!journal.of("a").is_empty());
        assert!(
            journal.of("u0").is_empty(),
            "the one not heard of for longest goes first"
        );

        assert!(!journal.of(&format!("u{}", OBJECTS - 1)).is_empty());
    }

    #[test]
    fn a_repetition_is_one_record() {
        let journal = Journal::new();
        journal.note("a", stage(1, "waits"));
        journal.note("a", stage(2, "waits"));
        assert_eq!(journal.of("a"), [stage(2, "waits")]);
    }
}
