//! `coracle node`: empties a node, and removes it from the cluster.

use std::time::Duration;

use clap::{Args, Subcommand};
use coracle_api::{Map, Value};
use coracle_client::{Client, ConfigError, DeleteOptions, Error, ListOptions, Patch, Resource};
use tokio::time::Instant;

use crate::administrator::Administrator;
use crate::process::{self, ProcessError};
use crate::token::duration;

/// Drains and removes nodes.
#[derive(Args)]
pub(crate) struct Node {
    #[command(flatten)]
    cluster: Administrator,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Mark a node as unschedulable and evict its pods, but those of DaemonSets and static ones
    Drain(Drain),
    /// Drain a node and delete it from the cluster
    Remove(Remove),
}

#[derive(Args)]
struct Drain {
    /// Name of the node
    node: String,
    /// Time within which the pods must be gone: 5m, 30s; 0: no limit
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    /// Grace period of the pods in seconds [default: that of each pod]
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<i64>,
    /// Evict pods that no controller creates again elsewhere
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
struct Remove {
    #[command(flatten)]
    drain: Drain,
    /// Delete the node without draining it: its machine is gone
    #[arg(long)]
    no_drain: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
    #[error("pods without a controller would be lost; evict them with --force: {0}")]
    Unmanaged(String),
    #[error("not gone after {0:?}: {1}")]
    TimedOut(Duration, String),
    #[error(transparent)]
    Api(#[from] Error),
}

pub(crate) fn run(command: &Node) -> Result<(), NodeError> {
    process::block_on(async {
        let client = command.cluster.client().await?;
        match &command.command {
            Command::Drain(command) => drain(&client, command).await,
            Command::Remove(command) => remove(&client, command).await,
        }
    })?
}

async fn remove(client: &Client, command: &Remove) -> Result<(), NodeError> {
    let node = &command.drain.node;
    if !command.no_drain {
        drain(client, &command.drain).await?;
    }

    let nodes = client.resource(&Resource::builtin("", "v1", "nodes"));
    nodes.delete(node, &DeleteOptions::default()).await?;
    process::print_line(format_args!(
        "node {node} removed; stop its agent and remove its files with `coracle reset`"
    ));
    Ok(())
}

async fn drain(client: &Client, command: &Drain) -> Result<(), NodeError> {
    let nodes = client.resource(&Resource::builtin("", "v1", "nodes"));
    let mut patch = Map::new();
    patch.object_mut("spec").insert("unschedulable", true);
    nodes
        .patch(&command.node, &Patch::Merge(Value::Object(patch)))
        .await?;

    let deadline = Instant::now() + command.timeout;
    let mut announced = Vec::new();
    loop {
        let pods = evictable(client, &command.node).await?;
        if pods.is_empty() {
            process::print_line(format_args!("node {} drained", command.node));
            return Ok(());
        }

        let alone: Vec<String> = pods
            .iter()
            .filter(|pod| controller(pod).is_none() && !is_terminal(pod))
            .map(name)
            .collect();
        if !alone.is_empty() && !command.force {
            return Err(NodeError::Unmanaged(alone.join(", ")));
        }
        if !command.timeout.is_zero() && Instant::now() >= deadline {
            let left: Vec<String> = pods.iter().map(name).collect();
            return Err(NodeError::TimedOut(command.timeout, left.join(", ")));
        }

        for pod in &pods {
            if pod.meta().deletion_timestamp().is_none() {
                evict(client, pod, command.grace_period, &mut announced).await?;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Interval at which evictions that a disruption budget refuses are tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Evicts a pod, unless a disruption budget does not allow it now.
async fn evict(
    client: &Client,
    pod: &Value,
    grace_period: Option<i64>,
    announced: &mut Vec<String>,
) -> Result<(), NodeError> {
    let (namespace, own) = (pod.meta().namespace(), pod.meta().name());
    let mut eviction = Map::new();
    eviction.insert("apiVersion", "policy/v1");
    eviction.insert("kind", "Eviction");
    let metadata = eviction.object_mut("metadata");
    metadata.insert("name", own);
    metadata.insert("namespace", namespace);
    if let Some(seconds) = grace_period {
        eviction
            .object_mut("deleteOptions")
            .insert("gracePeriodSeconds", seconds);
    }

    let access = client
        .resource(&Resource::builtin("", "v1", "pods"))
        .namespace(namespace)
        .subresource("eviction");
    let evicted = access.create_below(own, &Value::Object(eviction)).await;
    match evicted {
        Ok(_) => process::print_line(format_args!("pod {} evicted", name(pod))),
        Err(error) if error.is_not_found() => {}
        Err(error) if error.is_busy() => {
            if !announced.contains(&name(pod)) {
                announced.push(name(pod));
                process::print_line(format_args!("pod {}: {error}; retrying", name(pod)));
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// The pods of a node that can be elsewhere: not those of DaemonSets, and not static ones.
async fn evictable(client: &Client, node: &str) -> Result<Vec<Value>, Error> {
    let pods = client.resource(&Resource::builtin("", "v1", "pods"));
    let options = ListOptions::fields(format!("spec.nodeName={node}"));
    let found = pods.list_all(&options).await?.items;
    let stays = |pod: &Value| {
        controller(pod).is_some_and(|kind| kind == "DaemonSet")
            || pod
                .meta()
                .annotation("kubernetes.io/config.mirror")
                .is_some()
    };
    Ok(found.into_iter().filter(|pod| !stays(pod)).collect())
}

/// The kind of a pod's controller.
fn controller(pod: &Value) -> Option<&str> {
    let owners = pod.at(&["metadata", "ownerReferences"])?.as_array()?;
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.iter().find(controls)?.get("kind")?.as_str()
}

fn is_terminal(pod: &Value) -> bool {
    let phase = pod.at(&["status", "phase"]).and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn name(pod: &Value) -> String {
    format!("{}/{}", pod.meta().namespace(), pod.meta().name())
}
