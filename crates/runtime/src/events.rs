//! Container events (GetContainerEvents): broadcast to all subscribers.

use coracle_cri::v1::{ContainerEventResponse, ContainerEventType};
use coracle_cri::{Error, Events as EventStream};
use tokio::sync::broadcast;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

use crate::clock;
use crate::node::Node;

/// How many events are buffered for a slow subscriber.
const MOST_WAITING: usize = 1024;

pub(crate) struct Events {
    sender: broadcast::Sender<ContainerEventResponse>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::channel(MOST_WAITING).0,
        }
    }

    pub(crate) fn subscribe(&self) -> EventStream {
        let events = BroadcastStream::new(self.sender.subscribe());
        Box::pin(events.map(|event| event.map_err(|error| Error::Internal(error.to_string()))))
    }
}

impl Node {
    /// Sends an event of a container or sandbox, with the status of its whole pod.
    pub(crate) fn send_event(&self, id: &str, sandbox: &str, what: ContainerEventType) {
        if self.events.sender.receiver_count() == 0 {
            return;
        }

        let containers = self.containers_of(sandbox);
        let event = ContainerEventResponse {
            container_id: id.to_owned(),
            container_event_type: what.into(),
            created_at: clock::now(),
            pod_sandbox_status: self.sandbox(sandbox).ok().map(|sandbox| sandbox.status()),
            containers_statuses: containers
                .iter()
                .map(|container| container.status())
                .collect(),
        };

        // The subscribers may be gone by now.
        self.events.sender.send(event).map(drop).unwrap_or_default();
    }
}
