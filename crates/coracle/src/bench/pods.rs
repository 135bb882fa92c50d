//! How fast pods get nodes, and what nodes cost that do nothing.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::typed::TypedError;
use coracle_client::{
    Change, Client, Config, Environment, Informers, Projection, Resource, Selection, Tasks,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::BenchError;

/// What is held of a pod: whether it has a node, and whether it is ready. A node can be ready as well.
struct Seen {
    bound: bool,
    ready: bool,
}

impl Projection for Seen {
    fn project(object: &Arc<Value>) -> Result<Seen, TypedError> {
        let node = object.at(&["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let text =
            |condition: &Value, name: &str| condition.get(name).and_then(Value::as_str).map(str::to_string);
        let is_ready = |condition: &Value| {
            text(condition, "type").as_deref() == Some("Ready")
                && text(condition, "status").as_deref() == Some("True")
        };
        Ok(Seen { bound: !node.is_empty(), ready: conditions.iter().any(is_ready) })
    }
}

/// Pods that are watched on their way.
pub(super) struct Watched {
    counted: watch::Receiver<Counted>,
    _tasks: Tasks,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    bound: usize,
    ready: usize,
}

impl Counted {
    fn add(&mut self, pod: &Seen) {
        self.bound += usize::from(pod.bound);
        self.ready += usize::from(pod.ready);
    }

    fn take_away(&mut self, pod: &Seen) {
        self.bound -= usize::from(pod.bound);
        self.ready -= usize::from(pod.ready);
    }
}

/// How long all of them took.
pub(super) struct Took {
    pub(super) bound: Duration,
    pub(super) ready: Duration,
}

impl Watched {
    /// Begins to watch the pods of a namespace.
    pub(super) async fn begin(
        kubeconfig: Option<&std::path::Path>,
        namespace: &str,
    ) -> Result<Watched, BenchError> {
        Watched::of(kubeconfig, Selection::all(&Resource::builtin("", "v1", "pods")).namespace(namespace))
            .await
    }

    async fn of(kubeconfig: Option<&std::path::Path>, which: Selection) -> Result<Watched, BenchError> {
        let config = Config::load(kubeconfig, None, &Environment::default())?;
        let client = Client::connect(config, crate::world::WORLD).await?.named("coracle-bench");
        let tasks = Tasks::new();
        let pods = Informers::new(client, tasks.clone()).of::<Seen>(which);
        pods.synced().await;
        let (count, counted) = watch::channel(Counted::default());
        let mut changes = pods.subscribe();
        tasks.spawn(async move {
            loop {
                let change = changes.next().await;
                count.send_modify(|counted| match &change {
                    Change::Added { object, .. } => counted.add(object),
                    Change::Updated { old, new } => {
                        counted.take_away(old);
                        counted.add(new);
                    }
                    Change::Deleted { object, .. } => counted.take_away(object),
                    Change::Synced => {}
                });
            }
        });
        Ok(Watched { counted, _tasks: tasks })
    }

    /// Waits until so many have nodes and are ready; it began at `begun`.
    pub(super) async fn all(mut self, pods: usize, begun: Instant) -> Took {
        // The sender lives as long as its task, which ends with this.
        drop(self.counted.wait_for(|counted| counted.bound >= pods).await);
        let bound = begun.elapsed();
        drop(self.counted.wait_for(|counted| counted.ready >= pods).await);
        Took { bound, ready: begun.elapsed() }
    }
}

/// Waits until so many nodes are ready.
pub(super) async fn nodes_are_ready(
    kubeconfig: Option<&std::path::Path>,
    count: usize,
) -> Result<(), BenchError> {
    let mut nodes = Watched::of(kubeconfig, Selection::all(&Resource::builtin("", "v1", "nodes"))).await?;
    drop(nodes.counted.wait_for(|counted| counted.ready >= count).await);
    Ok(())
}

/// A Deployment of so many pods.
pub(super) fn deployment(replicas: usize) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"bench"}},"spec":{{"replicas":{replicas},
        "selector":{{"matchLabels":{{"app":"bench"}}}},"template":{{"metadata":{{"labels":{{"app":"bench"}}}},
        "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    )
}
