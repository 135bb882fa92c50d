//! Events of `events.k8s.io`: what happens again while it is remembered becomes a series of one
//! event.
//!
//! The second time is told at once; from then on it is only counted, and the count told when the
//! series has ended, or after half an hour of it. Nothing is dropped, and messages are not
//! compared: of the same thing about the same version of an object the first is told.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_api::time::{MicroTime, Timestamp};
use coracle_api::{Map, Text, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::debug;

use super::send::{name_after, put, reference, tried};
use super::{EventType, ObjectReference, WAITING};
use crate::client::Client;
use crate::error::Error;
use crate::patch::Patch;
use crate::resource::Resource;
use crate::tasks::Tasks;
use crate::world::World;

/// What has not happened again for so long is over, in seconds; so often it is looked for, too.
const OVER_AFTER: i64 = 6 * 60;
/// A series that goes on is told this often, in seconds.
const TOLD_EVERY: i64 = 30 * 60;
/// So much is remembered; beyond it, what happened once is forgotten.
const REMEMBERED: usize = 8192;
/// The longest name of who reports.
const LONGEST_INSTANCE: usize = 128;

/// What happened, as it was said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Happening<'a> {
    /// The object that it happened to.
    pub about: &'a ObjectReference,
    /// Another that has to do with it.
    pub related: Option<&'a ObjectReference>,
    /// Whether it is as it should be.
    pub kind: EventType,
    /// `FailedScheduling`.
    pub reason: &'static str,
    /// What was being done: `Scheduling`.
    pub action: &'static str,
}

/// Tells of what happens, in the name of one controller, as series.
#[derive(Clone)]
pub struct SeriesRecorder {
    said: mpsc::Sender<Said>,
    controller: Text,
    host: Text,
    world: World,
}

impl SeriesRecorder {
    /// A recorder of a controller on a host; its events are sent by a task of `tasks`.
    pub fn new(client: &Client, controller: &str, host: &str, tasks: &Tasks) -> SeriesRecorder {
        let (said, heard) = mpsc::channel(WAITING);
        tasks.spawn(run(client.clone(), heard));
        let (controller, host) = (Text::new(controller), Text::new(host));
        SeriesRecorder {
            said,
            controller,
            host,
            world: client.world(),
        }
    }

    /// The same recorder in the name of another controller.
    #[must_use]
    pub fn controller(mut self, controller: &str) -> SeriesRecorder {
        self.controller = Text::new(controller);
        self
    }

    /// Tells of something, without waiting.
    pub fn say(&self, happening: &Happening<'_>, note: impl Into<String>) {
        let mut instance = format!("{}-{}", self.controller, self.host);
        instance.truncate(instance.floor_char_boundary(LONGEST_INSTANCE));
        let said = Said {
            key: Key {
                about: happening.about.clone(),
                related: happening.related.cloned(),
                kind: happening.kind,
                reason: happening.reason,
                action: happening.action,
                controller: self.controller.clone(),
            },
            instance: Text::from(instance),
            note: note.into(),
            at: self.world.now(),
        };

        if self.said.try_send(said).is_err() {
            debug!(
                reason = happening.reason,
                "too many events wait: this one is lost"
            );
        }
    }
}

/// What makes two events one.
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
struct Said {
    key: Key,
    instance: Text,
    note: String,
    at: Timestamp,
}

/// An event as it is to be written.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    said: Said,
    name: String,
    series: Option<Series>,
}

/// How often it happened, and when last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Series {
    count: i64,
    last: Timestamp,
}

/// What happened lately. Pure: the time comes with what was said.
#[derive(Default)]
struct Book {
    events: BTreeMap<Key, (Event, Timestamp)>,
    /// The number in the name of the newest.
    last_name: i64,
}

impl Book {
    /// What is to be written of something that was said; none: it is only counted.
    fn hear(&mut self, said: Said) -> Option<Event> {
        if let Some((event, told)) = self.events.get_mut(&said.key) {
            let known = event.series;
            event.series = Some(Series {
                count: known.map_or(2, |known| known.count + 1),
                last: said.at,
            });

            if known.is_some() {
                return None;
            }

            *told = said.at;
            return Some(event.clone());
        }

        if self.events.len() >= REMEMBERED {
            self.events.retain(|_, (event, _)| event.series.is_some());
        }

        self.last_name = name_after(self.last_name, said.at);
        let name = format!("{}.{:x}", said.key.about.name, self.last_name);
        let event = Event {
            name,
            said,
            series: None,
        };

        self.events
            .insert(event.said.key.clone(), (event.clone(), event.said.at));

        Some(event)
    }

    /// Forgets what is over. What is to be written: series that ended, and those that go on and
    /// were not told for long.
    fn sweep(&mut self, now: Timestamp) -> Vec<Event> {
        let mut due = Vec::new();
        self.events.retain(|_, (event, told)| {
            let last = event.series.map_or(event.said.at, |series| series.last);
            let is_over = now.unix_seconds() - last.unix_seconds() >= OVER_AFTER;
            let is_old = now.unix_seconds() - told.unix_seconds() >= TOLD_EVERY;
            if event.series.is_some() && (is_over || is_old) {
                *told = now;
                due.push(event.clone());
            }
            !is_over
        });

        due
    }
}

async fn run(client: Client, mut heard: mpsc::Receiver<Said>) {
    let mut book = Book::default();
    let mut sweeps = None;
    loop {
        let swept = async {
            match sweeps {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };

        let due = tokio::select! {
            said = heard.recv() => match said {
                Some(said) => book.hear(said).into_iter().collect(),
                None => return,
            },
            () = swept => {
                sweeps = None;
                book.sweep(client.world().now())
            }
        };

        for event in due {
            if let Err(error) = tried(|| write(&client, &event)).await {
                debug!(%error, event = event.name, "an event is lost");
            }
        }

        // Whoever remembers nothing has nothing to wake up for.
        if sweeps.is_none() && !book.events.is_empty() {
            sweeps = Some(Instant::now() + Duration::from_secs(OVER_AFTER.unsigned_abs()));
        }
    }
}

async fn write(client: &Client, event: &Event) -> Result<(), Error> {
    let events = client.resource(&Resource::builtin("events.k8s.io", "v1", "events"));
    let events = events.namespace(event.said.key.about.namespace_of_events());
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
    let Said {
        key,
        instance,
        note,
        at,
    } = &event.said;

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

    fn said(at: i64, name: &str, note: &str) -> Said {
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
        Said {
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
    fn the_second_time_is_told_and_the_next_are_counted() {
        let mut book = Book::default();
        let told: Vec<_> = (0..5)
            .map(|at| count(book.hear(said(at, "p", "x"))))
            .collect();
        assert_eq!(told, [Some(1), Some(2), None, None, None]);

        assert_eq!(
            count(book.hear(said(5, "q", "x"))),
            Some(1),
            "another object is another event"
        );

        assert_eq!(
            count(book.hear(said(6, "q", "y"))),
            Some(2),
            "messages are not compared"
        );
    }

    #[test]
    fn a_series_is_told_when_it_is_over() {
        let mut book = Book::default();
        for at in 0..5 {
            book.hear(said(at, "p", "x"));
        }

        book.hear(said(0, "once", "x"));
        assert!(
            book.sweep(Timestamp::from_unix(OVER_AFTER, 0)).is_empty(),
            "it is not over yet"
        );

        assert_eq!(book.events.len(), 1, "what happened once is over");

        let told = book.sweep(Timestamp::from_unix(4 + OVER_AFTER, 0));
        assert_eq!(
            told.into_iter()
                .map(|event| count(Some(event)))
                .collect::<Vec<_>>(),
            [Some(5)]
        );

        assert!(book.events.is_empty());
        assert_eq!(
            count(book.hear(said(999, "p", "x"))),
            Some(1),
            "then it begins anew"
        );
    }

    #[test]
    fn a_series_that_goes_on_is_told_now_and_then() {
        let mut book = Book::default();
        let mut told = Vec::new();
        for at in (0..2 * TOLD_EVERY).step_by(60) {
            book.hear(said(at, "p", "x"));
            if at % OVER_AFTER == 0 {
                let due = book.sweep(Timestamp::from_unix(at, 0));
                told.extend(
                    due.into_iter()
                        .map(|event| (at, count(Some(event)).unwrap())),
                );
            }
        }

        // Told at once the second time, after a minute; looked at every six.
        assert_eq!(told, [(2160, 37)]);
    }

    #[test]
    fn what_happened_once_is_forgotten_when_there_is_too_much() {
        let mut book = Book::default();
        book.hear(said(0, "twice", "x"));
        book.hear(said(1, "twice", "x"));

        for number in 0..REMEMBERED {
            book.hear(said(2, &number.to_string(), "x"));
        }

        assert!(book.events.len() < REMEMBERED);
        assert_eq!(
            count(book.hear(said(3, "twice", "x"))),
            None,
            "what came twice is still counted"
        );
    }

    #[test]
    fn an_event_says_who_did_what_to_whom() {
        let mut said = said(1, "p", "no room");
        said.key.about.namespace = "here".into();
        said.key.related = Some(ObjectReference {
            name: "other".into(),
            ..ObjectReference::default()
        });

        let event = Book::default().hear(said).unwrap();

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
