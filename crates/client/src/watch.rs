//! A watch: events as they come, decoded one by one.

use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::{Text, Value};

use crate::error::Error;
use crate::status::Status;
use crate::transport::{Body, Lines, lines};

/// Marks the bookmark after which a watch tells of news only.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// An object came, or came to match.
    Added(Value),
    /// An object changed.
    Modified(Value),
    /// An object went, or ceased to match: its last state, with the version of its going.
    Deleted(Value),
    /// Everything up to this version has been told.
    Bookmark {
        /// The version.
        resource_version: Text,
        /// Whether everything that there was has been told now.
        initial_events_end: bool,
    },
    /// The watch ends here, and why.
    Error(Box<Status>),
}

/// A stream of events.
pub struct Watch {
    lines: Lines,
}

impl Watch {
    pub(crate) fn new(body: Body) -> Watch {
        Watch { lines: lines(body) }
    }

    /// The next event; `None`: the server has ended the watch, as it does after some time.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        match self.lines.next().await? {
            None => Ok(None),
            Some(line) => decode(&line).map(Some),
        }
    }
}

fn decode(line: &Bytes) -> Result<WatchEvent, Error> {
    let bad = |reason: String| Error::Answer(format!("a watch event: {reason}"));
    let mut event = json::parse(line).map_err(|error| bad(error.to_string()))?;
    let members = event.as_object_mut().ok_or_else(|| bad("not an object".to_string()))?;
    let object = members.remove("object").unwrap_or_default();
    match members.str("type").unwrap_or_default() {
        "ADDED" => Ok(WatchEvent::Added(object)),
        "MODIFIED" => Ok(WatchEvent::Modified(object)),
        "DELETED" => Ok(WatchEvent::Deleted(object)),
        "BOOKMARK" => Ok(WatchEvent::Bookmark {
            resource_version: Text::new(object.meta().resource_version()),
            initial_events_end: object.meta().annotation(INITIAL_EVENTS_END) == Some("true"),
        }),
        "ERROR" => {
            let status = Status::from_value(&object);
            let status = status.ok_or_else(|| bad("an error that is no Status".to_string()))?;
            Ok(WatchEvent::Error(Box::new(status)))
        }
        other => Err(bad(format!("unknown type {other:?}"))),
    }
}
