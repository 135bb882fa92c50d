//! Events on their way to the server.

use std::time::Duration;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use tokio::sync::mpsc;
use tracing::debug;

use super::correlate::{Correlator, Sent, Verdict};
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

/// One after the other: events are told when there is time, and leave the server to those who work.
/// What is said meanwhile waits in the channel.
pub(super) async fn run(client: Client, mut heard: mpsc::Receiver<Said>) {
    let events = client.resource(&Resource::builtin("", "v1", "events"));
    let (mut correlator, mut last_name) = (Correlator::default(), 0);
    while let Some(said) = heard.recv().await {
        let (key, message, sent) = match correlator.judge(&said) {
            Verdict::Drop => continue,
            Verdict::New(key, message) => (key, message, None),
            Verdict::Again(key, message, sent) => (key, message, Some(sent)),
        };

        last_name = name_after(last_name, said.at);

        match send(&events, &said, &message, sent, last_name).await {
            Ok(sent) => correlator.remember(key, sent, said.at),
            Err(error) => {
                debug!(%error, reason = %said.reason, about = %said.about.name, "an event is lost")
            }
        }
    }
}

/// Events are named by the moment, and no two share one.
pub(super) fn name_after(last: i64, at: Timestamp) -> i64 {
    let nanos = at
        .unix_seconds()
        .saturating_mul(1_000_000_000)
        .saturating_add(i64::from(at.subsec_nanos()));
    nanos.max(last + 1)
}

async fn send(
    events: &Access,
    said: &Said,
    message: &str,
    sent: Option<Sent>,
    number: i64,
) -> Result<Sent, Error> {
    let events = events.clone().namespace(said.about.namespace_of_events());
    tried(|| send_once(&events, said, message, sent.as_ref(), number)).await
}

/// Tries a few times, as long as the server does not refuse.
pub(super) async fn tried<T, F>(once: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut tried = 0;
    loop {
        tried += 1;
        match once().await {
            Ok(done) => return Ok(done),
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
        let again = Sent {
            count: sent.count + 1,
            ..sent.clone()
        };

        match events
            .briefly()
            .patch(&sent.name, &repetition(said, message, again.count))
            .await
        {
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

    metadata.insert("namespace", said.about.namespace_of_events());
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

pub(super) fn reference(about: &ObjectReference) -> Map {
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

pub(super) fn put(map: &mut Map, name: &'static str, text: &Text) {
    if !text.is_empty() {
        map.insert(name, text.clone());
    }
}
