//! Binding: a task per pod that calls the Bind plugins.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::{Map, Value};
use coracle_client::{Access, Client, Resource};

use tokio::time::Instant;

use super::metrics::AttemptResult;
use super::{EventLoop, TaskResult};
use crate::cycle::{Point, Status};
use crate::framework::{Bind, Bound, Profile, Refusal};
use crate::pod::Pod;
use crate::queue::QueuedPod;

/// Binds with `POST pods/NAME/binding`.
pub(super) struct ApiBinder {
    pods: Access,
}

impl ApiBinder {
    pub(super) fn new(client: &Client) -> ApiBinder {
        ApiBinder {
            pods: client.resource(&Resource::builtin("", "v1", "pods")),
        }
    }
}

#[async_trait]
impl Bind for ApiBinder {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<Bound, Refusal> {
        let pods = self
            .pods
            .clone()
            .namespace(&pod.namespace)
            .subresource("binding");

        match pods
            .briefly()
            .create_below(&pod.name, &binding(pod, node))
            .await
        {
            Ok(()) => Ok(Bound::Done),
            Err(error) => Err(Refusal::Failed(error.to_string())),
        }
    }
}

/// The UID prevents that a recreated pod of the same name gets a node chosen for its predecessor.
fn binding(pod: &Pod, node: &str) -> Value {
    let mut binding = Map::new();
    binding.insert("apiVersion", "v1");
    binding.insert("kind", "Binding");
    let meta = binding.object_mut("metadata");
    meta.insert("namespace", pod.namespace.clone());
    meta.insert("name", pod.name.clone());
    meta.insert("uid", pod.uid.clone());
    let target = binding.object_mut("target");
    target.insert("kind", "Node");
    target.insert("name", node);
    Value::Object(binding)
}

/// A pod to bind.
pub(super) struct Binding {
    pub(super) profile: Arc<Profile>,
    /// The pod with its node.
    pub(super) pod: Arc<Pod>,
    pub(super) queued: QueuedPod,
    /// When the attempt began.
    pub(super) began: Instant,
}

/// The result of a binding.
pub(super) struct Outcome {
    binding: Binding,
    result: Result<(), (&'static str, Refusal)>,
    /// How long the Bind plugins took.
    took: Duration,
}

impl EventLoop {
    pub(super) fn bind(&mut self, binding: Binding) {
        let result_sender = self.result_sender.clone();
        self.tasks.spawn(async move {
            let began = Instant::now();
            let result = bound(&binding).await;
            let outcome = Outcome {
                binding,
                result,
                took: began.elapsed(),
            };
            if result_sender
                .send(TaskResult::Bound(Box::new(outcome)))
                .await
                .is_err()
            {
                tracing::debug!("scheduler stopped; binding result dropped");
            }
        });
    }

    pub(super) fn bound(&mut self, outcome: Outcome) {
        let Outcome {
            binding:
                Binding {
                    profile,
                    pod,
                    queued,
                    began,
                    ..
                },
            result,
            took,
        } = outcome;
        let status = match &result {
            Ok(()) => Status::Success,
            Err((_, refusal)) => Status::of(refusal),
        };
        self.metrics
            .reached(&profile.name, Point::Bind, status, took);

        let (plugin, refusal) = match result {
            Ok(()) => {
                let scheduled = AttemptResult::Scheduled;
                self.metrics
                    .attempted(&profile.name, scheduled, began.elapsed());
                let waited = self.now().saturating_sub(queued.first_seen);
                self.metrics.bound(queued.attempts, waited);

                self.reporter.bound(&pod);
                return;
            }
            Err(refused) => refused,
        };

        // The response can be lost although the pod was bound: then the API has reported the pod's
        // node by now, or will.
        let confirmed = self
            .cache
            .pod(&pod.uid)
            .is_none_or(|_| !self.cache.is_assumed(&pod.uid));

        if confirmed {
            self.queue.done(&pod.uid);
            return;
        }

        self.attempt_began = began;
        self.undo_placement(queued, plugin, refusal);
    }
}

async fn bound(binding: &Binding) -> Result<(), (&'static str, Refusal)> {
    let (profile, pod, node) = (&binding.profile, &binding.pod, &binding.pod.node_name);
    for plugin in &profile.binds {
        match plugin.inner.bind(pod, node).await {
            Ok(Bound::Done) => return Ok(()),
            Ok(Bound::Skip) => {}
            Err(Refusal::Failed(error)) => {
                let error = format!(
                    "binding rejected: running Bind plugin \"{}\": {error}",
                    plugin.plugin
                );
                return Err((plugin.plugin, Refusal::Failed(error)));
            }
            Err(refusal) => return Err((plugin.plugin, refusal)),
        }
    }

    Err((
        "",
        Refusal::Failed(String::from("no Bind plugin handled the pod")),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::pod;

    #[test]
    fn a_decision_is_for_one_pod_and_not_for_the_next_of_its_name() {
        let result_sender = binding(&pod("p", json!({})), "n");
        let text = |path: &[&str]| {
            result_sender
                .at(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_string()
        };
        assert_eq!(text(&["metadata", "uid"]), "uid-p");

        assert_eq!(
            (text(&["target", "kind"]), text(&["target", "name"])),
            ("Node".into(), "n".into())
        );
    }
}
