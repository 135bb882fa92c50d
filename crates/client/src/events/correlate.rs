//! Which events are sent, and as what. Pure: the time comes with what was said.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Text;
use coracle_api::time::Timestamp;

use super::{EventType, ObjectReference, Said};

/// So many different messages about one thing are told one by one; the next are told as one.
const ALIKE: usize = 10;
/// After so long without another one, counting starts anew, in seconds.
const ALIKE_WITHIN: i64 = 600;
/// One component may tell so much about one object at once…
const BURST: f64 = 25.0;
/// …and then one event in five minutes.
const PER_SECOND: f64 = 1.0 / 300.0;
/// What is remembered of each kind is bounded: the oldest half is forgotten.
const REMEMBERED: usize = 4096;

/// What is to be done about something that was said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It is an event of its own; remember it under this key.
    New(Key, String),
    /// It is the same as one that was sent before.
    Again(Key, String, Sent),
    /// It is one too many.
    Drop,
}

/// What makes two events the same; without the message, what makes them alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    component: Text,
    host: Text,
    about: ObjectReference,
    kind: EventType,
    reason: Text,
    message: Option<String>,
}

/// An event that was sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) name: String,
    pub(super) count: i64,
    pub(super) first: Timestamp,
}

#[derive(Default)]
pub(super) struct Correlator {
    spam: BTreeMap<(Text, ObjectReference), (f64, Timestamp)>,
    alike: BTreeMap<Key, (BTreeSet<String>, Timestamp)>,
    sent: BTreeMap<Key, (Sent, Timestamp)>,
}

impl Correlator {
    pub(super) fn judge(&mut self, said: &Said) -> Verdict {
        let (key, message) = self.aggregate(said);
        let verdict = match self.sent.get(&key) {
            Some((sent, _)) => Verdict::Again(key, message, sent.clone()),
            None => Verdict::New(key, message),
        };
        if self.is_spam(said) {
            Verdict::Drop
        } else {
            verdict
        }
    }

    /// What came of sending it.
    pub(super) fn remember(&mut self, key: Key, sent: Sent, now: Timestamp) {
        forget_half(&mut self.sent, |(_, at)| *at);
        self.sent.insert(key, (sent, now));
    }

    /// Many messages about one thing become one.
    fn aggregate(&mut self, said: &Said) -> (Key, String) {
        let alike = key(said, None);
        forget_half(&mut self.alike, |(_, at)| *at);
        let (messages, last) = self
            .alike
            .entry(alike.clone())
            .or_insert((BTreeSet::new(), said.at));

        if said.at.unix_seconds() - last.unix_seconds() > ALIKE_WITHIN {
            messages.clear();
        }

        *last = said.at;
        messages.insert(said.message.clone());

        if messages.len() < ALIKE {
            return (key(said, Some(said.message.clone())), said.message.clone());
        }

        messages.pop_first();

        (
            alike,
            format!("(combined from similar events): {}", said.message),
        )
    }

    /// Each component has a bucket per object.
    fn is_spam(&mut self, said: &Said) -> bool {
        forget_half(&mut self.spam, |(_, at)| *at);
        let place = (said.component.clone(), without_version(&said.about));
        let (tokens, last) = self.spam.entry(place).or_insert((BURST, said.at));

        let passed = said
            .at
            .since(*last)
            .to_std()
            .unwrap_or_default()
            .as_secs_f64();
        *tokens = (*tokens + passed * PER_SECOND).min(BURST);

        *last = said.at;

        if *tokens < 1.0 {
            return true;
        }

        *tokens -= 1.0;

        false
    }
}

fn key(said: &Said, message: Option<String>) -> Key {
    Key {
        component: said.component.clone(),
        host: said.host.clone(),
        about: without_version(&said.about),
        kind: said.kind,
        reason: said.reason.clone(),
        message,
    }
}

fn without_version(about: &ObjectReference) -> ObjectReference {
    ObjectReference {
        resource_version: Text::default(),
        ..about.clone()
    }
}

fn forget_half<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, at: impl Fn(&V) -> Timestamp) {
    if map.len() < REMEMBERED {
        return;
    }
    let mut times: Vec<Timestamp> = map.values().map(&at).collect();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    map.retain(|_, value| at(value) > middle);
}
