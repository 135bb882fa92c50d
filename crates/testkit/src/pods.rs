//! A minimal kubelet for tests: sets pod statuses and finishes deletions.

use std::time::Duration;

use coracle_api::Value;
use coracle_client::{Client, DeleteOptions, ListOptions, Resource, Tasks};

/// Polling interval.
const PAUSE: Duration = Duration::from_millis(20);

/// Gives every pending pod the status that `becomes` returns, and finishes deletions. Runs until
/// the returned tasks are dropped.
pub fn run_pods(
    client: &Client,
    becomes: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
) -> Tasks {
    let tasks = Tasks::new();
    let pods = client.resource(&Resource::builtin("", "v1", "pods"));
    tasks.spawn(async move {
        loop {
            for pod in pods.list_all(&ListOptions::default()).await.unwrap().items {
                let own = pods.clone().namespace(pod.meta().namespace());
                let phase = pod
                    .at(&["status", "phase"])
                    .and_then(Value::as_str)
                    .unwrap_or("Pending");

                if pod.meta().is_being_deleted() {
                    let at_once = DeleteOptions {
                        grace_period_seconds: Some(0),
                        ..DeleteOptions::default()
                    };
                    // It may be gone by now.
                    drop(own.delete(pod.meta().name(), &at_once).await);
                } else if phase == "Pending"
                    && let Some(status) = becomes(&pod)
                {
                    let mut next = pod.clone();
                    next.as_object_mut().unwrap().insert("status", status);
                    drop(own.subresource("status").update(&next).await);
                }
            }

            tokio::time::sleep(PAUSE).await;
        }
    });

    tasks
}
