//! Sends events to the server.

use std::time::Duration;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use tokio::sync::mpsc;
use tracing::debug;

use super::correlate::{Correlator, Sent, Verdict};
use super::{ObjectReference, Record};
use crate::access::Access;
use crate::client::Client;
use crate::error::Error;
use crate::patch::Patch;
use crate::resource::Resource;

/// How often sending an event is tried.
const TRIES: u32 = 12;
/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// Sends one event after the other, so that events put little load on the server. Events recorded
/// meanwhile wait in the channel.
pub(super) async fn run(client: Client, mut queued: mpsc::Receiver<Record>) {
    let events = client.resource(&Resource::builtin("", "v1", "events"));
    let (mut correlator, mut last_name) = (Correlator::default(), 0);
    while let Some(record) = queued.recv().await {
        let (key, message, sent) = match correlator.correlate(&record) {
            Verdict::Drop => continue,
            Verdict::New(key, message) => (key, message, None),
            Verdict::Again(key, message, sent) => (key, message, Some(sent)),
        };

        last_name = name_after(last_name, record.at);

        match send(&events, &record, &message, sent, last_name).await {
            Ok(sent) => correlator.cache_sent(key, sent, record.at),
            Err(error) => {
                debug!(%error, reason = %record.reason, about = %record.about.name, "cannot send event; event dropped")
            }
        }
    }
}

/// Event names contain a unique timestamp.
pub(super) fn name_after(last: i64, at: Timestamp) -> i64 {
    let nanos = at
        .unix_seconds()
        .saturating_mul(1_000_000_000)
        .saturating_add(i64::from(at.subsec_nanos()));
    nanos.max(last + 1)
}

async fn send(
    events: &Access,
    record: &Record,
    message: &str,
    sent: Option<Sent>,
    number: i64,
) -> Result<Sent, Error> {
    let events = events.clone().namespace(record.about.namespace_of_events());
    with_retries(|| send_once(&events, record, message, sent.as_ref(), number)).await
}

/// Retries unless the server rejects the event.
pub(super) async fn with_retries<T, F>(once: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut with_retries = 0;
    loop {
        with_retries += 1;
        match once().await {
            Ok(done) => return Ok(done),
            // A rejection is final.
            Err(error @ Error::Refused(_)) => return Err(error),
            Err(error) if with_retries >= TRIES => return Err(error),
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}

async fn send_once(
    events: &Access,
    record: &Record,
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
            .patch(&sent.name, &repetition(record, message, again.count))
            .await
        {
            Ok(_) => return Ok(again),
            // It has expired in the meantime.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }

    let name = format!("{}.{number:x}", record.about.name);
    let new = Sent {
        name: name.clone(),
        count: sent.map_or(1, |sent| sent.count + 1),
        first: sent.map_or(record.at, |sent| sent.first),
    };
    events
        .briefly()
        .create(&event(record, message, &new))
        .await?;

    Ok(new)
}

fn repetition(record: &Record, message: &str, count: i64) -> Patch {
    let mut patch = Map::new();
    patch.insert("count", count);
    patch.insert("lastTimestamp", Time(record.at).text());
    patch.insert("message", message);
    Patch::Strategic(Value::Object(patch))
}

fn event(record: &Record, message: &str, sent: &Sent) -> Value {
    let mut event = Map::new();
    event.insert("apiVersion", "v1");
    event.insert("kind", "Event");
    let metadata = event.object_mut("metadata");
    metadata.insert("name", sent.name.as_str());

    metadata.insert("namespace", record.about.namespace_of_events());
    event.insert("involvedObject", reference(&record.about));
    event.insert("reason", record.reason.clone());
    event.insert("message", message);
    event.insert("type", record.kind.as_str());

    event.insert("count", sent.count);
    event.insert("firstTimestamp", Time(sent.first).text());
    event.insert("lastTimestamp", Time(record.at).text());
    let source = event.object_mut("source");
    put(source, "component", &record.component);
    put(source, "host", &record.host);
    event.insert("reportingComponent", record.component.clone());
    event.insert("reportingInstance", record.host.clone());
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
