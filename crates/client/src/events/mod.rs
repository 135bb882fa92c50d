//! Events: components record what happened to objects, with limits.
//!
//! A [`Recorder`] records an event; the [`correlate`](correlate::Correlator) decides whether it is
//! new, a repetition, one of many similar ones, or over the limit; a task sends it. Events are best
//! effort: recording does not wait, and an event that cannot be sent is dropped. [`Recorder`] uses
//! the core group, [`SeriesRecorder`] `events.k8s.io`, as upstream's components do.

mod correlate;
mod send;
mod series;
#[cfg(test)]
mod tests;

pub use series::{SeriesEvent, SeriesRecorder};

use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::tasks::Tasks;
use crate::world::World;

/// The buffer of events to be sent; more are dropped. Sized for some thousand pods that are
/// scheduled within a second.
const WAITING: usize = 8192;

/// The object that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectReference {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// Empty for cluster-scoped objects.
    pub namespace: Text,
    /// The object's name.
    pub name: Text,
    /// The object's UID.
    pub uid: Text,
    /// The object's resource version.
    pub resource_version: Text,
    /// The field path: `spec.containers{web}`.
    pub field_path: Text,
}

impl ObjectReference {
    /// The namespace of events about it.
    fn namespace_of_events(&self) -> &str {
        if self.namespace.is_empty() {
            "default"
        } else {
            &self.namespace
        }
    }

    /// A reference to an object.
    pub fn of(object: &Value) -> ObjectReference {
        let text =
            |name: &str| Text::new(object.get(name).and_then(Value::as_str).unwrap_or_default());
        let meta = object.meta();
        ObjectReference {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: Text::new(meta.namespace()),
            name: Text::new(meta.name()),
            uid: Text::new(meta.uid()),
            resource_version: Text::new(meta.resource_version()),
            field_path: Text::default(),
        }
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Normal.
    Normal,
    /// Warning.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// A recorded event.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    about: ObjectReference,
    kind: EventType,
    reason: Text,
    message: String,
    component: Text,
    host: Text,
    at: Timestamp,
}

/// Records events of one component. Clones share their limits.
#[derive(Clone)]
pub struct Recorder {
    queue: Option<mpsc::Sender<Record>>,
    component: Text,
    host: Text,
    world: World,
}

impl Recorder {
    /// A recorder of a component; a task in `tasks` sends its events.
    pub fn new(client: &Client, component: &str, tasks: &Tasks) -> Recorder {
        let (queue, queued) = mpsc::channel(WAITING);
        tasks.spawn(send::run(client.clone(), queued));
        Recorder {
            queue: Some(queue),
            component: Text::new(component),
            host: Text::default(),
            world: client.world(),
        }
    }

    /// A recorder that drops all events.
    pub fn silent(world: World) -> Recorder {
        Recorder {
            queue: None,
            component: Text::default(),
            host: Text::default(),
            world,
        }
    }

    /// The same recorder for another component.
    #[must_use]
    pub fn component(mut self, component: &str) -> Recorder {
        self.component = Text::new(component);
        self
    }

    /// The same recorder with a host name.
    #[must_use]
    pub fn host(mut self, host: &str) -> Recorder {
        self.host = Text::new(host);
        self
    }

    /// Records a normal event.
    pub fn normal(&self, about: &ObjectReference, reason: &str, message: impl Into<String>) {
        self.record(about, EventType::Normal, reason, message.into());
    }

    /// Records a warning.
    pub fn warning(&self, about: &ObjectReference, reason: &str, message: impl Into<String>) {
        self.record(about, EventType::Warning, reason, message.into());
    }

    fn record(&self, about: &ObjectReference, kind: EventType, reason: &str, message: String) {
        let Some(queue) = &self.queue else { return };
        let event = Record {
            about: about.clone(),
            kind,
            reason: Text::new(reason),
            message,
            component: self.component.clone(),
            host: self.host.clone(),
            at: self.world.now(),
        };

        if queue.try_send(event).is_err() {
            tracing::debug!(reason, "event queue full; event dropped");
        }
    }
}
