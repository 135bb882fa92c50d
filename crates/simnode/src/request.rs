//! The API requests of a node, and their results.
//!
//! The requests of a thousand nodes are queued: objects are built when a request is sent, not
//! before.

use std::sync::Arc;

use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Text, Value};
use coracle_client::{Access, Client, DeleteOptions, Error, ObjectKey, Patch, Resource};

use crate::node;
use crate::queue::QueueKind;

/// A request of one node.
pub(crate) struct Request {
    /// The index of the node.
    pub(crate) node: usize,
    pub(crate) operation: Operation,
}

/// The operation of a request.
pub(crate) enum Operation {
    /// Register the node, with a kubelet of this version.
    Register(Arc<str>),
    /// Write the node's status.
    NodeStatus(Value),
    /// Renew the lease of the node with this UID: replace it if its version is known, otherwise
    /// create it, or read its version.
    Renew { uid: Text, held: ResourceVersion },
    /// Write a pod's status.
    PodStatus {
        key: ObjectKey,
        uid: String,
        patch: Value,
    },
    /// Delete a pod with grace period 0.
    Remove { key: ObjectKey, uid: String },
}

/// The result of a request.
pub(crate) struct Done {
    pub(crate) node: usize,
    pub(crate) outcome: Outcome,
}

impl Done {
    pub(crate) fn queue_kind(&self) -> QueueKind {
        match self.outcome {
            Outcome::Renewed(_) => QueueKind::Leases,
            _ => QueueKind::Others,
        }
    }
}

pub(crate) enum Outcome {
    /// With the node's object.
    Registered(Result<Value, Error>),
    NodeStatus(Result<Value, Error>),
    /// With the lease's version.
    Renewed(Result<ResourceVersion, Error>),
    PodStatus {
        key: ObjectKey,
        uid: String,
        result: Result<ResourceVersion, Error>,
    },
    Removed {
        key: ObjectKey,
        uid: String,
        result: Result<(), Error>,
    },
}

impl Request {
    /// Sends the request as the node.
    pub(crate) async fn send(self, client: Client) -> Done {
        Done {
            node: self.node,
            outcome: send(self.node, self.operation, &client).await,
        }
    }

    /// The queue of the request.
    pub(crate) fn queue_kind(&self) -> QueueKind {
        match self.operation {
            Operation::Renew { .. } => QueueKind::Leases,
            _ => QueueKind::Others,
        }
    }
}

async fn send(node: usize, operation: Operation, client: &Client) -> Outcome {
    let core = |plural: &str| client.resource(&Resource::builtin("", "v1", plural));
    match operation {
        Operation::Register(version) => {
            let object = node::object(node, &version, client.world().now());
            Outcome::Registered(register(&core("nodes"), &object).await)
        }
        Operation::NodeStatus(object) => {
            let name = object.meta().name().to_string();
            let patched = core("nodes")
                .subresource("status")
                .patch(&name, &Patch::Strategic(object))
                .await;
            Outcome::NodeStatus(patched)
        }
        Operation::Renew { uid, held } => {
            let lease = node::lease(node, &uid, held, client.world().now());
            let leases = client.resource(&Resource::builtin("coordination.k8s.io", "v1", "leases"));
            Outcome::Renewed(renew(&leases.namespace("kube-node-lease"), &lease).await)
        }
        Operation::PodStatus { key, uid, patch } => {
            let pods = core("pods").namespace(&key.namespace).subresource("status");
            let written = pods
                .briefly()
                .patch(&key.name, &Patch::Strategic(patch))
                .await;

            Outcome::PodStatus {
                key,
                uid,
                result: written.map(|pod| pod.version),
            }
        }
        Operation::Remove { key, uid } => {
            let options = DeleteOptions {
                grace_period_seconds: Some(0),
                ..DeleteOptions::only(&uid)
            };

            let deleted = core("pods")
                .namespace(&key.namespace)
                .delete(&key.name, &options)
                .await;

            Outcome::Removed {
                key,
                uid,
                result: deleted.map(drop),
            }
        }
    }
}

async fn register(nodes: &Access, object: &Value) -> Result<Value, Error> {
    match nodes.create(object).await {
        Err(error) if error.is_already_exists() => nodes.get(object.meta().name()).await,
        made => made,
    }
}

async fn renew(leases: &Access, lease: &Value) -> Result<ResourceVersion, Error> {
    if !lease.meta().resource_version().is_empty() {
        return leases
            .briefly()
            .update(lease)
            .await
            .map(|lease| lease.version);
    }

    match leases.briefly().create(lease).await {
        Err(error) if error.is_already_exists() => {
            let held = version(&leases.get(lease.meta().name()).await?);
            let mut lease = lease.clone();
            lease.meta_mut().set_resource_version(held);
            leases
                .briefly()
                .update(&lease)
                .await
                .map(|lease| lease.version)
        }
        made => made.map(|lease| lease.version),
    }
}

fn version(object: &Value) -> ResourceVersion {
    object.meta().resource_version().parse().unwrap_or_default()
}
