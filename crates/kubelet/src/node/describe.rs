//! Builds the Node object. Pure.

use std::collections::BTreeMap;

use coracle_api::quantity::{Format, Quantity};
use coracle_api::time::Timestamp;
use coracle_cri::v1::{Image, RuntimeHandler};
use k8s_openapi::api::core::v1::{
    ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints,
    NodeFeatures, NodeRuntimeHandler, NodeRuntimeHandlerFeatures, NodeSpec, NodeStatus,
    NodeSwapStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::allocatable;
use super::machine::{Machine, architecture};
use crate::config::Config;
use crate::status::time;

/// Images reported in the node status, the largest ones.
const IMAGES: usize = 50;
const NAMES_PER_IMAGE: usize = 5;

/// The inputs of a node's status.
pub(super) struct StatusInputs<'a> {
    pub(super) config: &'a Config,
    pub(super) machine: &'a Machine,
    /// `coracle://0.1.0`.
    pub(super) runtime: &'a str,
    pub(super) handlers: &'a [RuntimeHandler],
    pub(super) groups_policy: bool,
    pub(super) images: &'a [Image],
    /// Why the node is not ready.
    pub(super) problems: &'a [String],
    pub(super) now: Timestamp,
}

/// The object that a new node is registered with.
pub(super) fn node(inputs: &StatusInputs<'_>) -> Node {
    let config = inputs.config;
    let mut labels = labels(&config.node_name);
    labels.extend(config.labels.clone());

    Node {
        metadata: ObjectMeta {
            name: Some(config.node_name.clone()),
            labels: Some(labels),
            annotations: Some(BTreeMap::from([(
                "volumes.kubernetes.io/controller-managed-attach-detach".to_owned(),
                "true".to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: config.provider_id.clone(),
            taints: Some(config.taints.clone()).filter(|taints| !taints.is_empty()),
            ..NodeSpec::default()
        }),
        status: Some(status(inputs, &NodeStatus::default())),
    }
}

/// Labels of every node.
pub(super) fn labels(name: &str) -> BTreeMap<String, String> {
    let pairs = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", architecture()),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Builds the status of a node from its previous status.
pub(super) fn status(inputs: &StatusInputs<'_>, before: &NodeStatus) -> NodeStatus {
    NodeStatus {
        addresses: Some(addresses(inputs.config)),
        capacity: Some(capacity(inputs)),
        allocatable: Some(allocatable(inputs)),
        conditions: Some(conditions(inputs, before)),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint {
                port: i32::from(inputs.config.port),
            }),
        }),
        node_info: Some(info(inputs)),
        images: Some(images(inputs.images)),
        runtime_handlers: Some(inputs.handlers.iter().map(handler).collect()),
        features: Some(NodeFeatures {
            supplemental_groups_policy: Some(inputs.groups_policy),
        }),
        // Maintained by the attach/detach controller.
        volumes_attached: before.volumes_attached.clone(),
        volumes_in_use: before.volumes_in_use.clone(),
        ..NodeStatus::default()
    }
}

fn addresses(config: &Config) -> Vec<NodeAddress> {
    let of = |kind: &str, address: String| NodeAddress {
        type_: kind.to_owned(),
        address,
    };
    let own = config.addresses.iter();
    let own = own.map(|address| of("InternalIP", address.to_string()));
    let external = config.external_addresses.iter();
    let external = external.map(|address| of("ExternalIP", address.to_string()));
    own.chain(external)
        .chain([of("Hostname", config.node_name.clone())])
        .collect()
}

fn capacity(inputs: &StatusInputs<'_>) -> BTreeMap<String, Text> {
    amounts(inputs, inputs.machine.memory, inputs.machine.disk)
}

fn allocatable(inputs: &StatusInputs<'_>) -> BTreeMap<String, Text> {
    let disk = allocatable::disk(inputs.machine);
    let mut all = amounts(inputs, allocatable::memory(inputs.machine), disk);
    // Upstream reports this remainder in bytes.
    all.insert(
        "ephemeral-storage".to_owned(),
        text(&Quantity::new(disk, Format::DecimalSi)),
    );
    all
}

fn amounts(inputs: &StatusInputs<'_>, memory: i64, disk: i64) -> BTreeMap<String, Text> {
    let whole = |count: i64| text(&Quantity::new(count, Format::DecimalSi));
    let kibi = |bytes: i64| Text(format!("{}Ki", bytes / 1024));
    let count = |count: usize| whole(i64::try_from(count).unwrap_or(i64::MAX));
    let mut all = BTreeMap::from([
        ("cpu".to_owned(), count(inputs.machine.processors)),
        ("memory".to_owned(), kibi(memory)),
        ("ephemeral-storage".to_owned(), kibi(disk)),
        ("pods".to_owned(), whole(i64::from(inputs.config.max_pods))),
    ]);

    for (size, bytes) in &inputs.machine.huge_pages {
        let name = format!("hugepages-{}", Quantity::new(*size, Format::BinarySi));
        all.insert(name, text(&Quantity::new(*bytes, Format::BinarySi)));
    }

    all
}

fn text(quantity: &Quantity) -> Text {
    Text(quantity.to_string())
}

fn info(inputs: &StatusInputs<'_>) -> NodeSystemInfo {
    let machine = inputs.machine;
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        boot_id: machine.boot_id.clone(),
        container_runtime_version: inputs.runtime.to_owned(),
        kernel_version: machine.kernel.clone(),
        kube_proxy_version: String::new(),
        kubelet_version: inputs.config.version.to_owned(),
        machine_id: machine.machine_id.clone(),
        operating_system: "linux".to_owned(),
        os_image: machine.os_image.clone(),
        system_uuid: machine.system_uuid.clone(),
        swap: Some(NodeSwapStatus {
            capacity: Some(machine.swap),
        })
        .filter(|_| machine.swap > 0),
    }
}

fn handler(handler: &RuntimeHandler) -> NodeRuntimeHandler {
    NodeRuntimeHandler {
        name: Some(handler.name.clone()),
        features: handler
            .features
            .as_ref()
            .map(|features| NodeRuntimeHandlerFeatures {
                recursive_read_only_mounts: Some(features.recursive_read_only_mounts),
                user_namespaces: Some(features.user_namespaces),
            }),
    }
}

/// Sorted by size, the largest first.
fn images(images: &[Image]) -> Vec<ContainerImage> {
    let mut images: Vec<&Image> = images.iter().collect();
    images.sort_by_key(|image| (std::cmp::Reverse(image.size), image.id.clone()));

    images
        .into_iter()
        .take(IMAGES)
        .map(|image| ContainerImage {
            names: Some(
                image
                    .repo_digests
                    .iter()
                    .chain(&image.repo_tags)
                    .take(NAMES_PER_IMAGE)
                    .cloned()
                    .collect(),
            ),
            size_bytes: i64::try_from(image.size).ok(),
        })
        .collect()
}

/// There is no eviction, so no pressure is reported; Ready is always the last.
fn conditions(inputs: &StatusInputs<'_>, before: &NodeStatus) -> Vec<NodeCondition> {
    let now = time(inputs.now);
    let of = |kind: &str, status: &str, reason: &str, message: &str| NodeCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(transition(before, kind, status, &now)),
    };

    let ready = match inputs.problems {
        [] => of(
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ),
        [only] => of("Ready", "False", "KubeletNotReady", only),
        several => of(
            "Ready",
            "False",
            "KubeletNotReady",
            &format!("[{}]", several.join(", ")),
        ),
    };

    let ours = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
    let others = before
        .conditions
        .iter()
        .flatten()
        .filter(|condition| !ours.contains(&condition.type_.as_str()));

    let pressures = [
        of(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        of(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        of(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
    ];

    others.cloned().chain(pressures).chain([ready]).collect()
}

fn transition(before: &NodeStatus, kind: &str, status: &str, now: &Time) -> Time {
    let before = before
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == kind);
    let same = before.filter(|before| before.status == status);
    same.and_then(|before| before.last_transition_time.clone())
        .unwrap_or_else(|| now.clone())
}

/// Whether two statuses are equal apart from heartbeat times.
pub(super) fn equal_except_heartbeat(one: &NodeStatus, other: &NodeStatus) -> bool {
    let timeless = |status: &NodeStatus| {
        let mut status = status.clone();
        status
            .conditions
            .iter_mut()
            .flatten()
            .for_each(|condition| condition.last_heartbeat_time = None);
        status
    };
    timeless(one) == timeless(other)
}
