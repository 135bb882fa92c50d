//! The journal: what happened to an object, when, by which component, and the outcome.
//!
//! Every component records each stage that it takes an object through; `coracle why` reads the
//! records. The journal is in memory and bounded: the newest records of each object, and the most
//! recently used objects.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;

/// Records kept of one object.
const STAGES: usize = 64;
/// The maximum number of objects.
const OBJECTS: usize = 8192;

/// One stage of an object's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// When it ended.
    pub when: Timestamp,
    /// The component: `replicaset-controller`.
    pub who: &'static str,
    /// The action: `reconcile`.
    pub what: &'static str,
    /// The outcome as text; empty: success.
    pub outcome: String,
}

/// The records of one process. Clones share them.
#[derive(Clone, Default)]
pub struct Journal {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Text, Object>,
    /// Objects by when they were last used.
    last_used: BTreeMap<u64, Text>,
    counted: u64,
}

struct Object {
    stages: VecDeque<Stage>,
    last_used: u64,
}

impl Journal {
    /// An empty journal.
    pub fn new() -> Journal {
        Journal::default()
    }

    /// Records a stage of an object. A repetition of the last one only updates its time.
    pub fn note(&self, uid: &str, stage: Stage) {
        if uid.is_empty() {
            return;
        }

        let mut state = self.state.lock();
        let state = &mut *state;
        state.counted += 1;

        let now = state.counted;
        let object = state
            .objects
            .entry(Text::new(uid))
            .or_insert_with(|| Object {
                stages: VecDeque::new(),
                last_used: now,
            });
        state.last_used.remove(&object.last_used);

        state.last_used.insert(now, Text::new(uid));
        object.last_used = now;

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

        if state.objects.len() > OBJECTS
            && let Some((_, oldest)) = state.last_used.pop_first()
        {
            state.objects.remove(&oldest);
        }
    }

    /// The records of an object, the oldest first.
    pub fn of(&self, uid: &str) -> Vec<Stage> {
        let state = self.state.lock();
        state
            .objects
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
    fn the_newest_records_of_the_most_recent_objects_are_kept() {
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
            "the least recently used object is removed first"
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
