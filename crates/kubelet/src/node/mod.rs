//! The Node object: registration, lease and status.
//!
//! The lease is the heartbeat, renewed every ten seconds. The status is computed as often, but sent
//! only when it has changed, and every five minutes.

pub(crate) mod allocatable;
mod describe;
mod lease;
pub(crate) mod machine;
mod pod_cidr;

use std::sync::Arc;
use std::time::Duration;

use coracle_api::{Map, Text, Value, typed};
use coracle_client::{Access, Error, Informer, ObjectKey, ObjectReference, Patch, Resource, Whole};
use coracle_cri::v1::{Image, ImageFilter, RuntimeHandler, StatusResponse, VersionResponse};
use k8s_openapi::api::core::v1::{self, NodeStatus};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::Config;
use crate::host::Host;
use describe::StatusInputs;
use machine::Machine;

/// Interval of status computation.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of status updates without a change.
const REPORT_INTERVAL: Duration = Duration::from_secs(300);
/// Retry delays of registration.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(7);

/// Maintains one node's object.
pub(crate) struct Node {
    host: Arc<Host>,
    config: Config,
    access: Access,
    machine: Machine,
    runtime: String,
    network: watch::Sender<Option<String>>,
}

impl Node {
    pub(crate) fn new(
        host: Arc<Host>,
        config: &Config,
        machine: Machine,
        runtime: &VersionResponse,
        network: watch::Sender<Option<String>>,
    ) -> Node {
        Node {
            access: host.client.resource(&Resource::of::<v1::Node>()),
            machine,
            runtime: format!("{}://{}", runtime.runtime_name, runtime.runtime_version),
            config: config.clone(),
            network,
            host,
        }
    }

    /// Registers the node; retries until it succeeds.
    pub(crate) async fn register(&self) {
        let mut pause = FIRST_RETRY;
        while let Err(error) = self.try_register().await {
            tracing::info!(%error, "cannot register node; retrying");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_RETRY);
        }
        self.record_event("Starting", "Starting kubelet.".to_owned());
    }

    async fn try_register(&self) -> Result<(), Error> {
        let observed = self.check_runtime().await;
        let node = describe::node(&self.status_inputs(&observed));
        let tree = typed::to_tree(&node).map_err(|error| Error::Request(error.to_string()))?;
        match self.access.create(&tree).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_already_exists() => self.update_labels(&node).await,
            Err(error) => Err(error),
        }
    }

    /// The node exists: updates its labels and leaves the rest unchanged.
    async fn update_labels(&self, node: &v1::Node) -> Result<(), Error> {
        let there = self.access.get(&self.host.node_name).await?;
        let labels = node.metadata.labels.iter().flatten();
        let missing: Map = labels
            .filter(|(name, value)| there.meta().label(name) != Some(value.as_str()))
            .map(|(name, value)| (Text::new(name), Value::from(value.as_str())))
            .collect();

        if missing.is_empty() {
            return Ok(());
        }

        let mut patch = Map::new();
        patch
            .object_mut("metadata")
            .insert("labels", Value::Object(missing));
        self.access
            .patch(&self.host.node_name, &Patch::Merge(Value::Object(patch)))
            .await?;

        Ok(())
    }

    /// Sends the runtime the pod CIDRs that the node had before, and checks the runtime status
    /// again.
    ///
    /// A runtime that has just started has no pod network yet. Reporting that would mark the node
    /// as not ready and take its running pods out of their Services. If the runtime does not accept
    /// the CIDRs, there is no network, and that is reported. Returns the CIDRs that were accepted.
    pub(crate) async fn restore_pod_cidrs(&self, object: &Informer<Whole>) -> Option<String> {
        let there = object.get(&ObjectKey::cluster(&self.host.node_name))?;
        let ranges = Some(pod_cidr::of(&there.object)).filter(|ranges| !ranges.is_empty())?;
        let sent = tokio::time::timeout(STATUS_INTERVAL, pod_cidr::send(&self.host, &ranges)).await;
        self.check_runtime().await;
        sent.is_ok().then_some(ranges)
    }

    /// Maintains lease and status until dropped; `known` are the pod CIDRs that the runtime already
    /// has.
    pub(crate) async fn run(self, object: Informer<Whole>, known: Option<String>) {
        let lease = lease::Lease::new(&self.host);
        let (sent, mut ranges) = watch::channel(());
        tokio::join!(
            lease.keep(),
            self.keep_status(&mut ranges),
            pod_cidr::follow(&self.host, &object, known, &sent)
        );
    }

    /// Checks the runtime periodically, and at once when it has received pod CIDRs.
    async fn keep_status(&self, ranges: &mut watch::Receiver<()>) {
        let mut reported: Option<(NodeStatus, Instant)> = None;
        loop {
            let observed = self.check_runtime().await;
            let before = reported
                .as_ref()
                .map(|(status, _)| status.clone())
                .unwrap_or_default();
            let now = describe::status(&self.status_inputs(&observed), &before);

            let stale = reported
                .as_ref()
                .is_none_or(|(_, at)| at.elapsed() >= REPORT_INTERVAL);
            if stale || !describe::equal_except_heartbeat(&before, &now) {
                match self.update_status(&observed).await {
                    Ok(status) => reported = Some((status, Instant::now())),
                    Err(error) => tracing::info!(%error, "cannot update node status"),
                }
            }

            let pause = STATUS_INTERVAL.mul_f64(1.0 + 0.04 * self.host.world.fraction());
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Ok(()) = ranges.changed() => {}
            }
        }
    }

    /// Patches the status on top of the server's version.
    async fn update_status(&self, observed: &RuntimeStatus) -> Result<NodeStatus, Error> {
        let there = self.access.get(&self.host.node_name).await?;
        let node: v1::Node =
            typed::from_tree(&there).map_err(|error| Error::Answer(error.to_string()))?;
        let before = node.status.unwrap_or_default();
        let now = describe::status(&self.status_inputs(observed), &before);
        let tree = typed::to_tree(&now).map_err(|error| Error::Request(error.to_string()))?;
        let mut patch = Map::new();
        patch.insert("status", with_replaced_addresses(tree));

        let access = self.access.clone().subresource("status");
        access
            .patch(
                &self.host.node_name,
                &Patch::Strategic(Value::Object(patch)),
            )
            .await?;

        self.record_condition_events(&before, &now);

        Ok(now)
    }

    fn record_condition_events(&self, before: &NodeStatus, now: &NodeStatus) {
        let name = &self.host.node_name;
        for condition in now.conditions.iter().flatten() {
            let was = before
                .conditions
                .iter()
                .flatten()
                .find(|was| was.type_ == condition.type_);

            if was.is_some_and(|was| was.status == condition.status) {
                continue;
            }

            let reason = match (condition.type_.as_str(), condition.status.as_str()) {
                ("Ready", "True") => "NodeReady",
                ("Ready", _) => "NodeNotReady",
                ("MemoryPressure", "False") => "NodeHasSufficientMemory",
                ("DiskPressure", "False") => "NodeHasNoDiskPressure",
                ("PIDPressure", "False") => "NodeHasSufficientPID",
                _ => continue,
            };
            self.record_event(reason, format!("Node {name} status is now: {reason}"));
        }
    }

    fn record_event(&self, reason: &str, message: String) {
        let name = Text::new(&self.host.node_name);
        // Upstream uses the name as UID in node events, because they start before the object has a
        // UID.
        let about = ObjectReference {
            api_version: Text::const_new("v1"),
            kind: Text::const_new("Node"),
            uid: name.clone(),
            name,
            ..ObjectReference::default()
        };
        self.host.events.normal(&about, reason, message);
    }

    fn status_inputs<'a>(&'a self, observed: &'a RuntimeStatus) -> StatusInputs<'a> {
        StatusInputs {
            config: &self.config,
            machine: &self.machine,
            runtime: &self.runtime,
            handlers: &observed.handlers,
            groups_policy: observed.groups_policy,
            images: &observed.images,
            problems: &observed.problems,
            now: self.host.now(),
        }
    }

    /// Checks the runtime status, and publishes the network state to pod workers.
    async fn check_runtime(&self) -> RuntimeStatus {
        let mut observed = match self.host.runtime.status(false).await {
            Ok(status) => RuntimeStatus::of(status),
            Err(error) => RuntimeStatus {
                problems: vec![format!("container runtime is down: {error}")],
                network: Some("container runtime is down".to_owned()),
                ..RuntimeStatus::default()
            },
        };

        observed.images = self
            .host
            .images
            .list_images(ImageFilter::default())
            .await
            .unwrap_or_default();

        self.network.send_if_modified(|network| {
            let changed = *network != observed.network;
            network.clone_from(&observed.network);
            changed
        });

        observed
    }
}

/// The runtime's status.
#[derive(Default)]
struct RuntimeStatus {
    problems: Vec<String>,
    /// Why the network is not ready.
    network: Option<String>,
    handlers: Vec<RuntimeHandler>,
    groups_policy: bool,
    images: Vec<Image>,
}

impl RuntimeStatus {
    fn of(answer: StatusResponse) -> RuntimeStatus {
        let conditions = answer
            .status
            .map(|status| status.conditions)
            .unwrap_or_default();

        let problem = |name: &str, what: &str| {
            let condition = conditions.iter().find(|condition| condition.r#type == name);
            match condition {
                Some(condition) if condition.status => None,
                Some(condition) => Some(format!(
                    "{what} not ready: {name}=false reason:{} message:{}",
                    condition.reason, condition.message
                )),
                None => Some(format!("{what} not ready: {name}=false")),
            }
        };
        let network = problem("NetworkReady", "container runtime network");

        let runtime = problem("RuntimeReady", "container runtime");
        RuntimeStatus {
            problems: runtime.into_iter().chain(network.clone()).collect(),
            network,
            handlers: answer.runtime_handlers,
            groups_policy: answer
                .features
                .is_some_and(|features| features.supplemental_groups_policy),
            images: Vec::new(),
        }
    }
}

/// Addresses are merged by type and a node may have two of one type, so the whole list is replaced.
fn with_replaced_addresses(status: Value) -> Value {
    let Value::Object(mut status) = status else {
        return status;
    };
    if let Some(Value::Array(addresses)) = status.remove("addresses") {
        let mut replace = Map::new();
        replace.insert("$patch", "replace");
        let all = addresses
            .into_iter()
            .chain([Value::Object(replace)])
            .collect();
        status.insert("addresses", Value::Array(all));
    }

    Value::Object(status)
}
