//! Observes how fast pods are bound and become ready.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::typed::TypedError;
use coracle_client::{
    Change, Client, Config, Environment, Informer, Informers, Projection, Resource, Selection,
    Tasks,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::BenchError;

/// An object watched as metadata only: its presence in the selection is all that is needed.
struct MetadataOnly;

impl Projection for MetadataOnly {
    const METADATA_ONLY: bool = true;

    fn project(_: &Arc<Value>) -> Result<MetadataOnly, TypedError> {
        Ok(MetadataOnly)
    }
}

/// Whether a pod or a node is ready.
struct ReadyProjection {
    ready: bool,
}

impl Projection for ReadyProjection {
    fn project(object: &Arc<Value>) -> Result<ReadyProjection, TypedError> {
        let conditions = object
            .at(&["status", "conditions"])
            .and_then(Value::as_array)
            .unwrap_or_default();

        let is = |condition: &Value, name: &str, wanted: &str| {
            condition.get(name).and_then(Value::as_str) == Some(wanted)
        };
        let is_ready =
            |condition: &Value| is(condition, "type", "Ready") && is(condition, "status", "True");

        Ok(ReadyProjection {
            ready: conditions.iter().any(is_ready),
        })
    }
}

/// Watches pods with as little load on the machine as possible: bound pods as metadata, whole pods
/// only when they run.
pub(super) struct Watched {
    bound: Counted,
    ready: Counted,
    _tasks: Tasks,
}

/// The current count.
type Counted = watch::Receiver<usize>;

/// How long all of them took.
pub(super) struct Took {
    pub(super) bound: Duration,
    pub(super) ready: Duration,
}

impl Watched {
    /// Starts to watch the pods of a namespace.
    pub(super) async fn begin(
        kubeconfig: Option<&std::path::Path>,
        namespace: &str,
    ) -> Result<Watched, BenchError> {
        let (informers, tasks) = informers(kubeconfig).await?;
        let pods = Selection::all(&Resource::builtin("", "v1", "pods")).namespace(namespace);
        let bound = informers.of::<MetadataOnly>(pods.clone().fields("spec.nodeName!="));
        let running = informers.of::<ReadyProjection>(pods.fields("status.phase=Running"));
        let bound = counted(&bound, |_| true, &tasks).await;
        let ready = counted(&running, |pod| pod.ready, &tasks).await;
        Ok(Watched {
            bound,
            ready,
            _tasks: tasks,
        })
    }

    /// Waits until this many pods are bound and ready; durations are relative to `begun`.
    pub(super) async fn all(mut self, pods: usize, begun: Instant) -> Took {
        // The senders live in tasks, which are stopped with this value.
        drop(self.bound.wait_for(|bound| *bound >= pods).await);
        let bound = begun.elapsed();
        drop(self.ready.wait_for(|ready| *ready >= pods).await);
        Took {
            bound,
            ready: begun.elapsed(),
        }
    }
}

async fn informers(kubeconfig: Option<&std::path::Path>) -> Result<(Informers, Tasks), BenchError> {
    let config = Config::load(kubeconfig, None, &Environment::default())?;
    let client = Client::connect(config, crate::world::WORLD)
        .await?
        .named("coracle-bench");
    let tasks = Tasks::new();
    Ok((Informers::new(client, tasks.clone()), tasks))
}

/// Counts the objects of an informer that match.
async fn counted<T: Projection>(
    informer: &Informer<T>,
    is: fn(&T) -> bool,
    tasks: &Tasks,
) -> Counted {
    informer.synced().await;
    let (count, counted) = watch::channel(0);

    let mut changes = informer.subscribe();
    tasks.spawn(async move {
        loop {
            let change = changes.next().await;
            let (more, less) = match &change {
                Change::Added { object, .. } => (is(object), false),
                Change::Updated { old, new } => (is(new), is(old)),
                Change::Deleted { object, .. } => (false, is(object)),
                Change::Synced => (false, false),
            };
            count.send_modify(|count| *count = *count + usize::from(more) - usize::from(less));
        }
    });

    counted
}

/// Waits until this many nodes are ready.
pub(super) async fn nodes_are_ready(
    kubeconfig: Option<&std::path::Path>,
    count: usize,
) -> Result<(), BenchError> {
    let (informers, tasks) = informers(kubeconfig).await?;
    let nodes = informers.of::<ReadyProjection>(&Resource::builtin("", "v1", "nodes"));
    let mut ready = counted(&nodes, |node| node.ready, &tasks).await;
    drop(ready.wait_for(|ready| *ready >= count).await);
    Ok(())
}

/// A Deployment with this many replicas.
pub(super) fn deployment(replicas: usize) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"bench"}},"spec":{{"replicas":{replicas},
        "selector":{{"matchLabels":{{"app":"bench"}}}},"template":{{"metadata":{{"labels":{{"app":"bench"}}}},
        "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    )
}
