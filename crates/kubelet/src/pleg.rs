//! The pod lifecycle event generator: wakes the worker of a pod when its containers change.
//!
//! Events come from the runtime's event stream; after a gap all pods are synced. For runtimes
//! without events, containers are listed every second and compared with the list before.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_cri::v1::{
    ContainerEventResponse, ContainerEventType, ContainerFilter, PodSandboxFilter,
};
use coracle_cri::{Error, Events, Runtime};
use tokio_stream::StreamExt as _;

use crate::host::Host;
use crate::pod_workers::PodWorkers;
use crate::spec::labels::POD_UID;

const RELIST: Duration = Duration::from_secs(1);
/// Retry delay of the event stream.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs until dropped.
pub(crate) async fn run(host: &Host, workers: &PodWorkers) {
    loop {
        match host.runtime.container_events().await {
            Ok(events) => {
                // Events before the subscription are unknown.
                workers.wake_all();
                listen(events, workers).await;
            }
            Err(Error::Unimplemented(_)) => relist(host.runtime.as_ref(), workers).await,
            Err(error) => {
                tracing::warn!(%error, "cannot subscribe to container events; retrying");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn listen(mut events: Events, workers: &PodWorkers) {
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if let Some(uid) = concerns(&event) {
                    workers.wake(uid);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "container event stream ended");
                return;
            }
        }
    }
}

/// The pod of an event. Deletions are ignored: the kubelet itself deletes containers.
fn concerns(event: &ContainerEventResponse) -> Option<&str> {
    if event.container_event_type() == ContainerEventType::ContainerDeletedEvent {
        return None;
    }
    event
        .pod_sandbox_status
        .as_ref()?
        .labels
        .get(POD_UID)
        .map(String::as_str)
}

/// IDs and states, by pod.
type PodStates = BTreeMap<String, Vec<(String, i32)>>;

async fn relist(runtime: &dyn Runtime, workers: &PodWorkers) {
    let mut before = PodStates::new();
    loop {
        if let Ok(now) = list(runtime).await {
            let changed = now
                .iter()
                .filter(|(uid, seen)| before.get(*uid) != Some(seen))
                .map(|(uid, _)| uid);
            let gone = before.keys().filter(|uid| !now.contains_key(*uid));
            changed.chain(gone).for_each(|uid| workers.wake(uid));
            before = now;
        }

        tokio::time::sleep(RELIST).await;
    }
}

async fn list(runtime: &dyn Runtime) -> coracle_cri::Result<PodStates> {
    let mut seen = PodStates::new();
    let mut note = |labels: &std::collections::HashMap<String, String>, id: String, state: i32| {
        if let Some(uid) = labels.get(POD_UID) {
            seen.entry(uid.clone()).or_default().push((id, state));
        }
    };

    for sandbox in runtime
        .list_pod_sandbox(PodSandboxFilter::default())
        .await?
    {
        note(&sandbox.labels, sandbox.id, sandbox.state);
    }

    for container in runtime.list_containers(ContainerFilter::default()).await? {
        note(&container.labels, container.id, container.state);
    }

    seen.values_mut().for_each(|all| all.sort());

    Ok(seen)
}
