//! Decides which events are sent, and in which form. Pure: the time is in the event.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Text;
use coracle_api::time::Timestamp;

use super::{EventType, ObjectReference, Record};

/// After this many different messages about one thing, the next ones are combined.
const SIMILAR_LIMIT: usize = 10;
/// After this many seconds without a similar one, counting restarts.
const SIMILAR_WINDOW: i64 = 600;
/// The burst of events of one component about one object…
const BURST: f64 = 25.0;
/// …and the rate after that: one in five minutes.
const PER_SECOND: f64 = 1.0 / 300.0;
/// The maximum number of entries of each cache: the older half is dropped.
const CACHE_SIZE: usize = 4096;

/// What to do with a recorded event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Create a new event and cache it under this key.
    New(Key, String),
    /// Increase the count of an event that was sent before.
    Again(Key, String, Sent),
    /// Drop it.
    Drop,
}

/// Two events with equal keys are the same; without the message, similar.
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
    pub(super) fn correlate(&mut self, record: &Record) -> Verdict {
        let (key, message) = self.aggregate(record);
        let verdict = match self.sent.get(&key) {
            Some((sent, _)) => Verdict::Again(key, message, sent.clone()),
            None => Verdict::New(key, message),
        };
        if self.is_spam(record) {
            Verdict::Drop
        } else {
            verdict
        }
    }

    /// Caches the result of sending an event.
    pub(super) fn cache_sent(&mut self, key: Key, sent: Sent, now: Timestamp) {
        drop_older_half(&mut self.sent, |(_, at)| *at);
        self.sent.insert(key, (sent, now));
    }

    /// Combines many messages about one thing.
    fn aggregate(&mut self, record: &Record) -> (Key, String) {
        let alike = key(record, None);
        drop_older_half(&mut self.alike, |(_, at)| *at);
        let (messages, last) = self
            .alike
            .entry(alike.clone())
            .or_insert((BTreeSet::new(), record.at));

        if record.at.unix_seconds() - last.unix_seconds() > SIMILAR_WINDOW {
            messages.clear();
        }

        *last = record.at;
        messages.insert(record.message.clone());

        if messages.len() < SIMILAR_LIMIT {
            return (
                key(record, Some(record.message.clone())),
                record.message.clone(),
            );
        }

        messages.pop_first();

        (
            alike,
            format!("(combined from similar events): {}", record.message),
        )
    }

    /// Each component has a token bucket per object.
    fn is_spam(&mut self, record: &Record) -> bool {
        drop_older_half(&mut self.spam, |(_, at)| *at);
        let place = (record.component.clone(), without_version(&record.about));
        let (tokens, last) = self.spam.entry(place).or_insert((BURST, record.at));

        let passed = record
            .at
            .since(*last)
            .to_std()
            .unwrap_or_default()
            .as_secs_f64();
        *tokens = (*tokens + passed * PER_SECOND).min(BURST);

        *last = record.at;

        if *tokens < 1.0 {
            return true;
        }

        *tokens -= 1.0;

        false
    }
}

fn key(record: &Record, message: Option<String>) -> Key {
    Key {
        component: record.component.clone(),
        host: record.host.clone(),
        about: without_version(&record.about),
        kind: record.kind,
        reason: record.reason.clone(),
        message,
    }
}

fn without_version(about: &ObjectReference) -> ObjectReference {
    ObjectReference {
        resource_version: Text::default(),
        ..about.clone()
    }
}

fn drop_older_half<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, at: impl Fn(&V) -> Timestamp) {
    if map.len() < CACHE_SIZE {
        return;
    }
    let mut times: Vec<Timestamp> = map.values().map(&at).collect();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    map.retain(|_, value| at(value) > middle);
}
