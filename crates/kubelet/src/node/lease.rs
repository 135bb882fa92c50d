//! The heartbeat of a node: its lease in `kube-node-lease`.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::MicroTime;
use coracle_api::{Map, Value};
use coracle_client::{Access, Error, Patch, Resource};
use k8s_openapi::api::coordination::v1;
use k8s_openapi::api::core;

use crate::host::Host;

const NAMESPACE: &str = "kube-node-lease";
/// Duration of a lease in seconds.
const LASTS: i64 = 40;
/// Renew interval: a quarter of the duration.
const EVERY: Duration = Duration::from_secs(10);
/// Retry delay while the server does not answer.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(7);

pub(super) struct Lease {
    host: Arc<Host>,
    access: Access,
    nodes: Access,
}

impl Lease {
    pub(super) fn new(host: &Arc<Host>) -> Lease {
        // A heartbeat that is too late is useless.
        let client = host.client.clone().within(EVERY);
        Lease {
            access: client
                .resource(&Resource::of::<v1::Lease>())
                .namespace(NAMESPACE),
            nodes: client.resource(&Resource::of::<core::v1::Node>()),
            host: host.clone(),
        }
    }

    /// Renews the lease forever.
    pub(super) async fn keep(&self) {
        let mut pause = PAUSE;
        loop {
            match self.renew().await {
                Ok(()) => {
                    pause = PAUSE;
                    tokio::time::sleep(EVERY.mul_f64(1.0 + 0.04 * self.host.world.fraction()))
                        .await;
                }
                Err(error) => {
                    tracing::info!(%error, "cannot renew node lease; retrying");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn renew(&self) -> Result<(), Error> {
        let mut patch = Map::new();
        patch.insert("spec", Value::Object(self.spec()));
        match self
            .access
            .patch(&self.host.node_name, &Patch::Merge(Value::Object(patch)))
            .await
        {
            Err(error) if error.is_not_found() => self.create().await,
            other => other.map(drop),
        }
    }

    /// A new lease is owned by the node and deleted with it.
    async fn create(&self) -> Result<(), Error> {
        let node = self.nodes.get(&self.host.node_name).await?;
        let mut owner = Map::new();
        owner.insert("apiVersion", "v1");
        owner.insert("kind", "Node");
        owner.insert("name", self.host.node_name.as_str());
        owner.insert("uid", node.meta().uid());

        let mut lease = Map::new();
        lease.insert("apiVersion", "coordination.k8s.io/v1");
        lease.insert("kind", "Lease");
        let metadata = lease.object_mut("metadata");
        metadata.insert("name", self.host.node_name.as_str());
        metadata.insert("namespace", NAMESPACE);
        metadata.insert("ownerReferences", vec![Value::Object(owner)]);
        lease.insert("spec", Value::Object(self.spec()));

        self.access.create(&Value::Object(lease)).await.map(drop)
    }

    fn spec(&self) -> Map {
        let mut spec = Map::new();
        spec.insert("holderIdentity", self.host.node_name.as_str());
        spec.insert("leaseDurationSeconds", LASTS);
        spec.insert(
            "renewTime",
            Value::String(MicroTime(self.host.now()).text()),
        );
        spec
    }
}
