//! Events on their way to the server.

use std::collections::BTreeSet;
use std::time::Duration;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tracing::debug;

use super::correlate::{Correlator, Key, Sent, Verdict};
use super::{ObjectReference, Said};
use crate::access::Access;
use crate::client::Client;
use crate::error::Error;
use crate::patch::Patch;
use crate::resource::Resource;

/// How often the sending of one event is tried.
const TRIES: u32 = 12;
/// The pause between two attempts.
const BETWEEN: Duration = Duration::from_secs(10);

/// So many are under way at once: enough to keep up with pods that get their nodes by the hundred, and few enough to leave
/// the server to those who work.
const UNDER_WAY: usize = 4;

pub(super) async fn run(client: Client, mut heard: mpsc::Receiver<Said>) {
    let mut sender = Sender {
        events: client.resource(&Resource::builtin("", "v1", "events")),
        correlator: Correlator::default(),
        last_name: 0,
        under_way: JoinSet::new(),
        about: BTreeSet::new(),
    };
    while let Some(said) = heard.recv().await {
        sender.send(said).await;
        // What has been answered meanwhile is remembered, whether or not anybody waits for it.
        while let Some(ended) = sender.under_way.try_join_next() {
            sender.ended(ended);
        }
    }
}

/// What was said, as what it was sent, and what came of it.
type Answered = (Said, Key, Result<Sent, Error>);

struct Sender {
    events: Access,
    correlator: Correlator,
    last_name: i64,
    under_way: JoinSet<Answered>,
    /// The UIDs of objects that something is being told of: whether the next is the same is known when that is answered.
    about: BTreeSet<Text>,
}

impl Sender {
    async fn send(&mut self, said: Said) {
        while self.under_way.len() >= UNDER_WAY || self.about.contains(&said.about.uid) {
            let Some(ended) = self.under_way.join_next().await else { break };
            self.ended(ended);
        }
        let (key, message, sent) = match self.correlator.judge(&said) {
            Verdict::Drop => return,
            Verdict::New(key, message) => (key, message, None),
            Verdict::Again(key, message, sent) => (key, message, Some(sent)),
        };
        self.last_name = name_after(self.last_name, said.at);
        let (events, number) = (self.events.clone(), self.last_name);
        self.about.insert(said.about.uid.clone());
        self.under_way.spawn(async move {
            let result = send(&events, &said, &message, sent, number).await;
            (said, key, result)
        });
    }

    fn ended(&mut self, ended: Result<Answered, JoinError>) {
        let (said, key, result) = match ended {
            Ok(ended) => ended,
            Err(ended) => match ended.try_into_panic() {
                Ok(panicked) => std::panic::resume_unwind(panicked),
                Err(ended) => unreachable!("nobody but this ends it: {ended}"),
            },
        };
        self.about.remove(&said.about.uid);
        match result {
            Ok(sent) => self.correlator.remember(key, sent, said.at),
            Err(error) => debug!(%error, reason = %said.reason, about = %said.about.name, "an event is lost"),
        }
    }
}

/// Events are named by the moment, and no two share one.
fn name_after(last: i64, at: Timestamp) -> i64 {
    let nanos = at.unix_seconds().saturating_mul(1_000_000_000).saturating_add(i64::from(at.subsec_nanos()));
    nanos.max(last + 1)
}

async fn send(
    events: &Access,
    said: &Said,
    message: &str,
    sent: Option<Sent>,
    number: i64,
) -> Result<Sent, Error> {
    let namespace = if said.about.namespace.is_empty() { "default" } else { &said.about.namespace };
    let events = events.clone().namespace(namespace);
    let mut tried = 0;
    loop {
        tried += 1;
        match send_once(&events, said, message, sent.as_ref(), number).await {
            Ok(sent) => return Ok(sent),
            // A server that says no will say no again.
            Err(error @ Error::Refused(_)) => return Err(error),
            Err(error) if tried >= TRIES => return Err(error),
            Err(_) => tokio::time::sleep(BETWEEN).await,
        }
    }
}

async fn send_once(
    events: &Access,
    said: &Said,
    message: &str,
    sent: Option<&Sent>,
    number: i64,
) -> Result<Sent, Error> {
    if let Some(sent) = sent {
        let again = Sent { count: sent.count + 1, ..sent.clone() };
        match events.briefly().patch(&sent.name, &repetition(said, message, again.count)).await {
            Ok(_) => return Ok(again),
            // It has expired in the meantime.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let name = format!("{}.{number:x}", said.about.name);
    let new = Sent {
        name: name.clone(),
        count: sent.map_or(1, |sent| sent.count + 1),
        first: sent.map_or(said.at, |sent| sent.first),
    };
    events.briefly().create(&event(said, message, &new)).await?;
    Ok(new)
}

fn repetition(said: &Said, message: &str, count: i64) -> Patch {
    let mut patch = Map::new();
    patch.insert("count", count);
    patch.insert("lastTimestamp", Time(said.at).text());
    patch.insert("message", message);
    Patch::Strategic(Value::Object(patch))
}

fn event(said: &Said, message: &str, sent: &Sent) -> Value {
    let mut event = Map::new();
    event.insert("apiVersion", "v1");
    event.insert("kind", "Event");
    let metadata = event.object_mut("metadata");
    metadata.insert("name", sent.name.as_str());
    let namespace = if said.about.namespace.is_empty() { "default" } else { &said.about.namespace };
    metadata.insert("namespace", namespace);
    event.insert("involvedObject", reference(&said.about));
    event.insert("reason", said.reason.clone());
    event.insert("message", message);
    event.insert("type", said.kind.as_str());
    event.insert("count", sent.count);
    event.insert("firstTimestamp", Time(sent.first).text());
    event.insert("lastTimestamp", Time(said.at).text());
    let source = event.object_mut("source");
    put(source, "component", &said.component);
    put(source, "host", &said.host);
    event.insert("reportingComponent", said.component.clone());
    event.insert("reportingInstance", said.host.clone());
    event.insert("eventTime", Value::Null);
    Value::Object(event)
}

fn reference(about: &ObjectReference) -> Map {
    let mut map = Map::new();
    for (name, text) in [
        ("apiVersion", &about.api_version),
        ("fieldPath", &about.field_path),
        ("kind", &about.kind),
        ("name", &about.name),
        ("namespace", &about.namespace),
        ("resourceVersion", &about.resource_version),
        ("uid", &about.uid),
    ] {
        put(&mut map, name, text);
    }
    map
}

fn put(map: &mut Map, name: &'static str, text: &Text) {
    if !text.is_empty() {
        map.insert(name, text.clone());
    }
}
