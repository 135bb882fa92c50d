//! Events of `events.k8s.io`: repetitions of a recent event become a series.
//!
//! The first repetition is sent immediately; the next ones are only counted, and the count is sent
//! when the series has ended, or every half hour. Nothing is dropped, and notes are not compared:
//! of repetitions about the same version of an object the first note is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_api::time::{MicroTime, Timestamp};
use coracle_api::{Map, Text, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::debug;

use super::send::{name_after, put, reference, with_retries};
use super::{EventType, ObjectReference, WAITING};
use crate::client::Client;
use crate::error::Error;
use crate::patch::Patch;
use crate::resource::Resource;
use crate::tasks::Tasks;
use crate::world::World;

/// A series ends after this many seconds without a repetition; also the interval of checking.
const SERIES_TIMEOUT: i64 = 6 * 60;
/// The count of a running series is sent at this interval, in seconds.
const REPORT_INTERVAL: i64 = 30 * 60;
/// The cache size; beyond it, events without a repetition are removed.
const CACHE_SIZE: usize = 8192;
/// The maximum length of the reporting instance.
const LONGEST_INSTANCE: usize = 128;

/// An event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesEvent<'a> {
    /// The object that it is about.
    pub about: &'a ObjectReference,
    /// A related object.
    pub related: Option<&'a ObjectReference>,
    /// Its type.
    pub kind: EventType,
    /// The reason: `FailedScheduling`.
    pub reason: &'static str,
    /// The action: `Scheduling`.
    pub action: &'static str,
}

/// Records events of one controller as series.
#[derive(Clone)]
pub struct SeriesRecorder {
    queue: mpsc::Sender<Record>,
    controller: Text,
    host: Text,
    world: World,
}

impl SeriesRecorder {
    /// A recorder of a controller on a host; a task in `tasks` sends its events.
    pub fn new(client: &Client, controller: &str, host: &str, tasks: &Tasks) -> SeriesRecorder {
        let (queue, queued) = mpsc::channel(WAITING);
        tasks.spawn(run(client.clone(), queued));
        let (controller, host) = (Text::new(controller), Text::new(host));
        SeriesRecorder {
            queue,
            controller,
            host,
            world: client.world(),
        }
    }

    /// The same recorder for another controller.
    #[must_use]
    pub fn controller(mut self, controller: &str) -> SeriesRecorder {
        self.controller = Text::new(controller);
        self
    }

    /// Records an event without waiting.
    pub fn record(&self, event: &SeriesEvent<'_>, note: impl Into<String>) {
        let mut instance = format!("{}-{}", self.controller, self.host);
        instance.truncate(instance.floor_char_boundary(LONGEST_INSTANCE));
        let record = Record {
            key: Key {
                about: event.about.clone(),
                related: event.related.cloned(),
                kind: event.kind,
                reason: event.reason,
                action: event.action,
                controller: self.controller.clone(),
            },
            instance: Text::from(instance),
            note: note.into(),
            at: self.world.now(),
        };

        if self.queue.try_send(record).is_err() {
            debug!(reason = event.reason, "event queue full; event dropped");
        }
    }
}

/// Events with equal keys are one series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    about: ObjectReference,
    related: Option<ObjectReference>,
    kind: EventType,
    reason: &'static str,
    action: &'static str,
    controller: Text,
}

#[derive(Clone, Debug, PartialEq)]
struct Record {
    key: Key,
    instance: Text,
    note: String,
    at: Timestamp,
}

/// An event to be written.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    record: Record,
    name: String,
    series: Option<Series>,
}

/// The number of occurrences, and the time of the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Series {
    count: i64,
    last: Timestamp,
}

/// The recent events. Pure: the time is in the event.
#[derive(Default)]
struct SeriesCache {
    events: BTreeMap<Key, (Event, Timestamp)>,
    /// The number in the name of the newest event.
    last_name: i64,
}

impl SeriesCache {
    /// The event to be written for a recorded one; `None`: it is only counted.
    fn observe(&mut self, record: Record) -> Option<Event> {
        if let Some((event, reported)) = self.events.get_mut(&record.key) {
            let known = event.series;
            event.series = Some(Series {
                count: known.map_or(2, |known| known.count + 1),
                last: record.at,
            });

            if known.is_some() {
                return None;
            }

            *reported = record.at;
            return Some(event.clone());
        }

        if self.events.len() >= CACHE_SIZE {
            self.events.retain(|_, (event, _)| event.series.is_some());
        }

        self.last_name = name_after(self.last_name, record.at);
        let name = format!("{}.{:x}", record.key.about.name, self.last_name);
        let event = Event {
            name,
            record,
            series: None,
        };

        self.events
            .insert(event.record.key.clone(), (event.clone(), event.record.at));

        Some(event)
    }

    /// Removes ended events. Returns the events to be written: ended series, and running ones whose
    /// count was not sent for long.
    fn remove_ended(&mut self, now: Timestamp) -> Vec<Event> {
        let mut due = Vec::new();
        self.events.retain(|_, (event, reported)| {
            let last = event.series.map_or(event.record.at, |series| series.last);
            let is_over = now.unix_seconds() - last.unix_seconds() >= SERIES_TIMEOUT;
            let is_old = now.unix_seconds() - reported.unix_seconds() >= REPORT_INTERVAL;
            if event.series.is_some() && (is_over || is_old) {
                *reported = now;
                due.push(event.clone());
            }
            !is_over
        });

        due
    }
}

async fn run(client: Client, mut queued: mpsc::Receiver<Record>) {
    let mut cache = SeriesCache::default();
    let mut sweeps = None;
    loop {
        let swept = async {
            match sweeps {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };

        let due = tokio::select! {
            record = queued.recv() => match record {
                Some(record) => cache.observe(record).into_iter().collect(),
                None => return,
            },
            () = swept => {
                sweeps = None;
                cache.remove_ended(client.world().now())
            }
        };

        for event in due {
            if let Err(error) = with_retries(|| write(&client, &event)).await {
                debug!(%error, event = event.name, "cannot send event; event dropped");
            }
        }

        // With an empty cache there is nothing to wake up for.
        if sweeps.is_none() && !cache.events.is_empty() {
            sweeps = Some(Instant::now() + Duration::from_secs(SERIES_TIMEOUT.unsigned_abs()));
        }
    }
}

async fn write(client: &Client, event: &Event) -> Result<(), Error> {
    let events = client.resource(&Resource::builtin("events.k8s.io", "v1", "events"));
    let events = events.namespace(event.record.key.about.namespace_of_events());
    if let Some(series) = event.series {
        let mut patch = Map::new();
        patch.insert("series", tree_of_series(series));

        match events
            .briefly()
            .patch(&event.name, &Patch::Strategic(Value::Object(patch)))
            .await
        {
            // It has expired in the meantime.
            Err(error) if error.is_not_found() => {}
            done => return done.map(|_| ()),
        }
    }

    events.briefly().create(&tree(event)).await.map(|_| ())
}

fn tree_of_series(series: Series) -> Map {
    let mut map = Map::new();
    map.insert("count", series.count);
    map.insert("lastObservedTime", MicroTime(series.last).text());
    map
}

fn tree(event: &Event) -> Value {
    let Record {
        key,
        instance,
        note,
        at,
    } = &event.record;

    let mut map = Map::new();
    map.insert("apiVersion", "events.k8s.io/v1");
    map.insert("kind", "Event");
    let metadata = map.object_mut("metadata");
    metadata.insert("name", event.name.as_str());
    metadata.insert("namespace", key.about.namespace_of_events());

    map.insert("eventTime", MicroTime(*at).text());
    map.insert("reportingController", key.controller.clone());
    map.insert("reportingInstance", instance.clone());
    map.insert("action", key.action);
    map.insert("reason", key.reason);
    map.insert("regarding", reference(&key.about));

    if let Some(related) = &key.related {
        map.insert("related", reference(related));
    }
    if let Some(series) = event.series {
        map.insert("series", tree_of_series(series));
    }

    put(&mut map, "note", &Text::new(note));
    map.insert("type", key.kind.as_str());

    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: i64, name: &str, note: &str) -> Record {
        let about = ObjectReference {
            kind: "Pod".into(),
            name: name.into(),
            ..ObjectReference::default()
        };

        let key = Key {
            about,
            related: None,
            kind: EventType::Warning,
            reason: "Why",
            action: "Doing",
            controller: "tester".into(),
        };

        let (note, at) = (note.to_string(), Timestamp::from_unix(at, 0));
        Record {
            key,
            instance: "tester-host".into(),
            note,
            at,
        }
    }

    fn count(event: Option<Event>) -> Option<i64> {
        event.map(|event| event.series.map_or(1, |series| series.count))
    }

    #[test]
    fn the_first_repetition_is_sent_and_the_next_are_counted() {
        let mut cache = SeriesCache::default();
        let counts: Vec<_> = (0..5)
            .map(|at| count(cache.observe(record(at, "p", "x"))))
            .collect();
        assert_eq!(counts, [Some(1), Some(2), None, None, None]);

        assert_eq!(
            count(cache.observe(record(5, "q", "x"))),
            Some(1),
            "another object is another event"
        );

        assert_eq!(
            count(cache.observe(record(6, "q", "y"))),
            Some(2),
            "messages are not compared"
        );
    }

    #[test]
    fn a_series_is_sent_when_it_has_ended() {
        let mut cache = SeriesCache::default();
        for at in 0..5 {
            cache.observe(record(at, "p", "x"));
        }

        cache.observe(record(0, "once", "x"));
        assert!(
            cache
                .remove_ended(Timestamp::from_unix(SERIES_TIMEOUT, 0))
                .is_empty(),
            "it has not ended yet"
        );

        assert_eq!(cache.events.len(), 1, "a single event has ended");

        let counts = cache.remove_ended(Timestamp::from_unix(4 + SERIES_TIMEOUT, 0));
        assert_eq!(
            counts
                .into_iter()
                .map(|event| count(Some(event)))
                .collect::<Vec<_>>(),
            [Some(5)]
        );

        assert!(cache.events.is_empty());
        assert_eq!(
            count(cache.observe(record(999, "p", "x"))),
            Some(1),
            "then a new event starts"
        );
    }

    #[test]
    fn a_running_series_is_sent_periodically() {
        let mut cache = SeriesCache::default();
        let mut counts = Vec::new();
        for at in (0..2 * REPORT_INTERVAL).step_by(60) {
            cache.observe(record(at, "p", "x"));
            if at % SERIES_TIMEOUT == 0 {
                let due = cache.remove_ended(Timestamp::from_unix(at, 0));
                counts.extend(
                    due.into_iter()
                        .map(|event| (at, count(Some(event)).unwrap())),
                );
            }
        }

        // Sent at the first repetition, after a minute; checked every six.
        assert_eq!(counts, [(2160, 37)]);
    }

    #[test]
    fn single_events_are_removed_when_the_cache_is_full() {
        let mut cache = SeriesCache::default();
        cache.observe(record(0, "twice", "x"));
        cache.observe(record(1, "twice", "x"));

        for number in 0..CACHE_SIZE {
            cache.observe(record(2, &number.to_string(), "x"));
        }

        assert!(cache.events.len() < CACHE_SIZE);
        assert_eq!(
            count(cache.observe(record(3, "twice", "x"))),
            None,
            "a series is still counted"
        );
    }

    #[test]
    fn an_event_has_reporter_action_and_objects() {
        let mut record = record(1, "p", "no room");
        record.key.about.namespace = "here".into();
        record.key.related = Some(ObjectReference {
            name: "other".into(),
            ..ObjectReference::default()
        });

        let event = SeriesCache::default().observe(record).unwrap();

        let series = Some(Series {
            count: 2,
            last: Timestamp::from_unix(2, 5_000),
        });

        let text = coracle_api::codec::json::to_vec(&tree(&Event { series, ..event }));
        assert_eq!(
            String::from_utf8(text).unwrap(),
            concat!(
                r#"{"action":"Doing","apiVersion":"events.k8s.io/v1","eventTime":"1970-01-01T00:00:01.000000Z","#,
                r#""kind":"Event","metadata":{"name":"p.3b9aca00","namespace":"here"},"note":"no room","#,
                r#""reason":"Why","regarding":{"kind":"Pod","name":"p","namespace":"here"},"#,
                r#""related":{"name":"other"},"reportingController":"tester","#,
                r#""reportingInstance":"tester-host","series":{"count":2,"#,
                r#""lastObservedTime":"1970-01-01T00:00:02.000005Z"},"type":"Warning"}"#
            )
        );
    }
}
