//! The checker of histories: was what clients saw possible?
//!
//! [`Traffic`] lets clients and watchers loose on a store and records what each of them asked and
//! was told, and when; a [`History`]. [`check`] then replays the store's own account of its
//! revisions (`timeline`) and compares: every acknowledged write is there, whole, once, at the
//! revision it was told and alone there; every answer is what was true at its revision; whoever
//! asked later was told of a later revision (`operations`). These three together are strict
//! serializability. And every watch told all of it, in order, once (`watches`).

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

/// What happened to a store, as told by those who used it and by itself.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    pub watches: Vec<WatchRecord>,
    /// Every change of every key, from the first, as a watch of everything told it afterwards.
    pub events: Vec<Event>,
}

/// One request of a client, with its answer.
#[derive(Clone, Debug)]
pub struct Operation {
    /// When it was asked, on a clock that all clients share.
    pub called: u64,
    /// When it was answered. Of a write whose fate is not known: never.
    pub answered: u64,
    pub did: Did,
}

#[derive(Clone, Debug)]
pub enum Did {
    /// Wrote a value, or deleted where there is none, and with it some other keys, all in one
    /// transaction; with a condition, only if the key was last written then.
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

/// How a write ended.
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
    /// It may have happened or not, or may happen yet.
    Unknown,
}

/// What one watcher was told, over all the watches it opened one after the other.
#[derive(Clone, Debug)]
pub struct WatchRecord {
    pub range: KeyRange,
    pub from: Revision,
    pub items: Vec<WatchItem>,
}

/// What cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("the write of {key} acknowledged at {revision} is not there")]
    LostWrite { key: String, revision: Revision },
    #[error("{key} changed at {revision}, but nobody changed it so")]
    StrangeChange { key: String, revision: Revision },
    #[error("two writes were told of {revision}, each as its own")]
    Shared { revision: Revision },
    #[error("{key} at {revision} does not follow from what was before")]
    WrongVersion { key: String, revision: Revision },
    #[error("a write of {key} happened at {revision} though its condition did not hold")]
    WrongSwap { key: String, revision: Revision },
    #[error("an answer about {key} at {revision} is not what was there")]
    WrongAnswer { key: String, revision: Revision },
    #[error("a request was answered at {revision} when {known} was known already")]
    Stale { revision: Revision, known: Revision },
    #[error("a watch told of {revision} after {last}")]
    Unordered { revision: Revision, last: Revision },
    #[error("a watch told {key} at {revision} twice")]
    Repeated { key: String, revision: Revision },
    #[error("a watch left out {key} at {revision}")]
    Missing { key: String, revision: Revision },
    #[error("a watch told of {revision} in two parts")]
    Torn { revision: Revision },
    #[error("a watch told of {key} at {revision}, which is not what happened")]
    WrongEvent { key: String, revision: Revision },
    #[error("a watch told of {revision} after progress through {progress}")]
    BrokenBookmark {
        revision: Revision,
        progress: Revision,
    },
}

/// Everything in a history that cannot be; nothing where it is strictly serializable and its
/// watches keep their word.
pub fn check(history: &History) -> Vec<Violation> {
    let (timeline, mut violations) = Timeline::replay(&history.events);
    violations.extend(operations::check(&history.operations, &timeline));
    for watch in &history.watches {
        violations.extend(watches::check(watch, &history.events));
    }
    violations
}

/// A key as a text, for people.
fn name(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
