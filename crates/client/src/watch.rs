//! A watch: events, decoded one by one.

use std::sync::Arc;

use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::{Text, Value};

use http::Response;
use http_body_util::BodyExt;

use crate::error::Error;
use crate::status::Status;
use crate::transport::{Body, Lines, Trees, lines};

/// Marks the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// An object was added, or matches now. The tree may be shared with other readers.
    Added(Arc<Value>),
    /// An object changed.
    Modified(Arc<Value>),
    /// An object was deleted, or no longer matches: its last state, with the resource version of
    /// the deletion.
    Deleted(Arc<Value>),
    /// Everything up to this resource version was delivered.
    Bookmark {
        /// The resource version.
        resource_version: Text,
        /// Whether the initial events are complete.
        initial_events_end: bool,
    },
    /// The watch ends with this error.
    Error(Box<Status>),
}

/// A stream of events.
pub struct Watch {
    source: Source,
}

enum Source {
    /// Each line is an event.
    Lines(Lines),
    /// Each byte of the body stands for an event.
    Trees {
        left: Trees,
        body: Body,
        ready: usize,
    },
}

impl Watch {
    pub(crate) fn new(mut answer: Response<Body>) -> Watch {
        let trees = answer.extensions_mut().remove::<Trees>();
        let body = answer.into_body();
        let source = match trees {
            Some(left) => Source::Trees {
                left,
                body,
                ready: 0,
            },
            None => Source::Lines(lines(body)),
        };
        Watch { source }
    }

    /// The next event; `None`: the server has ended the watch, for example because of its timeout.
    ///
    /// # Cancellation
    /// Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        match &mut self.source {
            Source::Lines(lines) => match lines.next().await? {
                None => Ok(None),
                Some(line) => decode(&line).map(Some),
            },
            Source::Trees { left, body, ready } => loop {
                if *ready > 0 {
                    *ready -= 1;
                    return Ok(left.take());
                }
                let Some(frame) = body.frame().await.transpose()? else {
                    return Ok(None);
                };
                *ready = frame.data_ref().map_or(0, Bytes::len);
            },
        }
    }
}

fn decode(line: &Bytes) -> Result<WatchEvent, Error> {
    let bad = |reason: String| Error::Answer(format!("invalid watch event: {reason}"));
    let mut event = json::parse(line).map_err(|error| bad(error.to_string()))?;
    let members = event
        .as_object_mut()
        .ok_or_else(|| bad("not an object".to_string()))?;

    let object = members.remove("object").unwrap_or_default();
    match members.str("type").unwrap_or_default() {
        "ADDED" => Ok(WatchEvent::Added(object.into())),
        "MODIFIED" => Ok(WatchEvent::Modified(object.into())),
        "DELETED" => Ok(WatchEvent::Deleted(object.into())),
        "BOOKMARK" => Ok(WatchEvent::Bookmark {
            resource_version: Text::new(object.meta().resource_version()),
            initial_events_end: object.meta().annotation(INITIAL_EVENTS_END) == Some("true"),
        }),
        "ERROR" => {
            let status = Status::from_value(&object);
            let status = status.ok_or_else(|| bad("an error without a Status".to_string()))?;
            Ok(WatchEvent::Error(Box::new(status)))
        }
        other => Err(bad(format!("unknown type {other:?}"))),
    }
}
