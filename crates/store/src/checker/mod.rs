//! The history checker: decides whether what clients observed was possible.
//!
//! [`Traffic`] runs clients and watchers against a store and records their requests and answers
//! with times: a [`History`]. [`check`] then replays the store's own list of revisions (`timeline`)
//! and compares: every acknowledged write is there, complete, once, at its reported revision and
//! alone there; every answer matches the state at its revision; a later request never gets an older
//! revision (`operations`). These three together are strict serializability. And every watch
//! delivered all events, in order, once (`watches`).

mod operations;
mod timeline;
mod traffic;
mod watches;

#[cfg(test)]
mod tests;

pub use traffic::Traffic;

use crate::{Event, KeyRange, KeyValue, RangeAnswer, Revision, WatchItem};
use bytes::Bytes;
use timeline::Timeline;

/// What happened to a store, as reported by its clients and by the store itself.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    pub watches: Vec<WatchRecord>,
    /// Every change of every key, as delivered afterwards by a watch of everything from the start.
    pub events: Vec<Event>,
}

/// One request of a client, with its answer.
#[derive(Clone, Debug)]
pub struct Operation {
    /// When it was sent, on a clock that all clients share.
    pub called: u64,
    /// When it was answered; never, for a write whose outcome is unknown.
    pub answered: u64,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub enum Action {
    /// Wrote a value, or deleted the key if there is none, and some other keys, all in one
    /// transaction; with a condition, only if the key was last written at that revision.
    Write {
        key: Bytes,
        value: Option<Bytes>,
        also: Vec<(Bytes, Bytes)>,
        condition: Option<Revision>,
        outcome: Written,
    },
    Read {
        range: KeyRange,
        at: Option<Revision>,
        answer: RangeAnswer,
    },
}

/// The outcome of a write.
#[derive(Clone, Debug)]
pub enum Written {
    At(Revision),
    /// There was nothing to delete.
    Nothing(Revision),
    /// The condition did not hold.
    Refused {
        found: Option<KeyValue>,
        at: Revision,
    },
    /// It may or may not have happened, or may still happen.
    Unknown,
}

/// What one watcher received, over all the watches that it opened one after the other.
#[derive(Clone, Debug)]
pub struct WatchRecord {
    pub range: KeyRange,
    pub from: Revision,
    pub items: Vec<WatchItem>,
}

/// An inconsistency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("the write of {key} acknowledged at {revision} is missing")]
    LostWrite { key: String, revision: Revision },
    #[error("{key} changed at {revision}, but no client wrote this change")]
    StrangeChange { key: String, revision: Revision },
    #[error("two writes were acknowledged with {revision}")]
    Shared { revision: Revision },
    #[error("{key} at {revision} does not follow from its previous state")]
    WrongVersion { key: String, revision: Revision },
    #[error("a write of {key} happened at {revision} though its condition did not hold")]
    WrongSwap { key: String, revision: Revision },
    #[error("an answer about {key} at {revision} does not match the state then")]
    WrongAnswer { key: String, revision: Revision },
    #[error("a request was answered at {revision} when {known} was known already")]
    Stale { revision: Revision, known: Revision },
    #[error("a watch delivered {revision} after {last}")]
    Unordered { revision: Revision, last: Revision },
    #[error("a watch delivered {key} at {revision} twice")]
    Repeated { key: String, revision: Revision },
    #[error("a watch missed {key} at {revision}")]
    Missing { key: String, revision: Revision },
    #[error("a watch delivered {revision} in two parts")]
    Torn { revision: Revision },
    #[error("a watch delivered a wrong event of {key} at {revision}")]
    WrongEvent { key: String, revision: Revision },
    #[error("a watch delivered {revision} after progress through {progress}")]
    BrokenBookmark {
        revision: Revision,
        progress: Revision,
    },
}

/// All violations in a history; none if it is strictly serializable and its watches are correct.
pub fn check(history: &History) -> Vec<Violation> {
    let (timeline, mut violations) = Timeline::replay(&history.events);
    violations.extend(operations::check(&history.operations, &timeline));
    for watch in &history.watches {
        violations.extend(watches::check(watch, &history.events));
    }
    violations
}

/// A key as printable text.
fn name(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
