//! Events: what components tell people about objects, and how they are kept from telling too much.
//!
//! A [`Recorder`] says what happened; the [`correlate`](correlate::Correlator)s decide whether that
//! is a new event, one more of the same, one of many alike, or one too many; a task sends it.
//! Events are best effort: nobody waits for them, and one that cannot be sent is lost. Those of the
//! core group are said by [`Recorder`]s, those of `events.k8s.io` by [`SeriesRecorder`]s, as
//! upstream's component of that name does.

mod correlate;
mod send;
mod series;
#[cfg(test)]
mod tests;

pub use series::{Happening, SeriesRecorder};

use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::tasks::Tasks;
use crate::world::World;

/// Events that wait to be sent; more are lost. Some thousand pods that get their nodes within a
/// second tell of it.
const WAITING: usize = 8192;

/// The object that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectReference {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// Empty for objects of the cluster.
    pub namespace: Text,
    /// The object's name.
    pub name: Text,
    /// Which it is.
    pub uid: Text,
    /// Which version of it.
    pub resource_version: Text,
    /// Which part of it: `spec.containers{web}`.
    pub field_path: Text,
}

impl ObjectReference {
    /// Where events about it are kept.
    fn namespace_of_events(&self) -> &str {
        if self.namespace.is_empty() {
            "default"
        } else {
            &self.namespace
        }
    }

    /// A whole object.
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

/// Whether something is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// It is.
    Normal,
    /// It is not.
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

/// Something that happened, as it was said.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    about: ObjectReference,
    kind: EventType,
    reason: Text,
    message: String,
    component: Text,
    host: Text,
    at: Timestamp,
}

/// Tells of what happens, in the name of one component. Clones share their limits.
#[derive(Clone)]
pub struct Recorder {
    said: Option<mpsc::Sender<Said>>,
    component: Text,
    host: Text,
    world: World,
}

impl Recorder {
    /// A recorder of a component; its events are sent by a task of `tasks`.
    pub fn new(client: &Client, component: &str, tasks: &Tasks) -> Recorder {
        let (said, heard) = mpsc::channel(WAITING);
        tasks.spawn(send::run(client.clone(), heard));
        Recorder {
            said: Some(said),
            component: Text::new(component),
            host: Text::default(),
            world: client.world(),
        }
    }

    /// A recorder that tells nobody.
    pub fn silent(world: World) -> Recorder {
        Recorder {
            said: None,
            component: Text::default(),
            host: Text::default(),
            world,
        }
    }

    /// The same recorder in the name of another component.
    #[must_use]
    pub fn component(mut self, component: &str) -> Recorder {
        self.component = Text::new(component);
        self
    }

    /// The same recorder, which says on which host it is.
    #[must_use]
    pub fn host(mut self, host: &str) -> Recorder {
        self.host = Text::new(host);
        self
    }

    /// Something is as it should be.
    pub fn normal(&self, about: &ObjectReference, reason: &str, message: impl Into<String>) {
        self.say(about, EventType::Normal, reason, message.into());
    }

    /// Something is not as it should be.
    pub fn warning(&self, about: &ObjectReference, reason: &str, message: impl Into<String>) {
        self.say(about, EventType::Warning, reason, message.into());
    }

    fn say(&self, about: &ObjectReference, kind: EventType, reason: &str, message: String) {
        let Some(said) = &self.said else { return };
        let event = Said {
            about: about.clone(),
            kind,
            reason: Text::new(reason),
            message,
            component: self.component.clone(),
            host: self.host.clone(),
            at: self.world.now(),
        };

        if said.try_send(event).is_err() {
            tracing::debug!(reason, "too many events wait: this one is lost");
        }
    }
}
