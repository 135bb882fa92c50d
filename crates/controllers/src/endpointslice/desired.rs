//! The endpoints of a Service: its pods as they appear in slices. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::{Map, Text, Value};
use coracle_client::Cached;

use super::fill::Group;
use super::topology;
use crate::views::{Node, Phase, Pod, Service};

/// The nodes of a Service's pods.
pub(crate) type Nodes = BTreeMap<Text, Arc<Cached<Node>>>;

/// The desired content of a Service's slices.
#[derive(Debug, Default)]
pub(crate) struct Desired {
    pub(crate) groups: Vec<Group>,
    /// Pods that are omitted because their nodes are unknown.
    pub(crate) without_node: usize,
}

/// The endpoints of one address family, grouped by ports.
pub(crate) fn desired(
    service: &Service,
    pods: &[Arc<Cached<Pod>>],
    nodes: &Nodes,
    family: &'static str,
) -> Desired {
    let mut groups: BTreeMap<Vec<u8>, Group> = BTreeMap::new();
    let mut without_node = 0;
    for pod in pods.iter().filter(|pod| is_endpoint(pod)) {
        let ports = ports(service, pod);
        let name = json::to_vec(&Value::Array(ports.clone()));
        let group = groups.entry(name).or_insert_with(|| Group {
            family,
            ports,
            endpoints: Vec::new(),
        });

        let node = nodes.get(&pod.node);
        if node.is_none() && !service.publishes_not_ready() {
            without_node += 1;
            continue;
        }

        let addresses = addresses(pod, family);
        if !addresses.is_empty() {
            group
                .endpoints
                .push(endpoint(service, pod, node, addresses));
        }
    }

    Desired {
        groups: groups.into_values().collect(),
        without_node,
    }
}

/// Whether a pod can be an endpoint at all.
pub(crate) fn is_endpoint(pod: &Pod) -> bool {
    !matches!(pod.phase, Phase::Succeeded | Phase::Failed) && !pod.ips.is_empty()
}

fn addresses(pod: &Pod, family: &str) -> Vec<Value> {
    let ips = pod.ips.iter().filter_map(|ip| ip.parse::<IpAddr>().ok());
    ips.filter(|ip| ip.is_ipv4() == (family == "IPv4"))
        .map(|ip| Value::from(ip.to_string()))
        .collect()
}

fn ports(service: &Service, pod: &Pod) -> Vec<Value> {
    let port = |port: &Map| {
        let number = Service::target_port(port, pod)?;
        let mut found = Map::new();
        found.insert("name", port.text("name"));
        found.insert("port", number);
        found.insert("protocol", port.text("protocol"));

        if let Some(spoken) = port.get("appProtocol").filter(|spoken| !spoken.is_null()) {
            found.insert("appProtocol", spoken.clone());
        }

        Some(Value::Object(found))
    };

    service.ports().filter_map(port).collect()
}

fn endpoint(
    service: &Service,
    pod: &Cached<Pod>,
    node: Option<&Arc<Cached<Node>>>,
    addresses: Vec<Value>,
) -> Value {
    let (serving, terminating) = (pod.is_ready(), pod.is_being_deleted);
    let mut endpoint = Map::new();
    endpoint.insert("addresses", addresses);
    let conditions = endpoint.object_mut("conditions");
    let ready = service.publishes_not_ready() || (serving && !terminating);
    conditions.insert("ready", ready);
    conditions.insert("serving", serving);
    conditions.insert("terminating", terminating);
    endpoint.insert("targetRef", target(pod));

    if !pod.node.is_empty() {
        endpoint.insert("nodeName", pod.node.clone());
    }

    let zone = node.map(|node| node.zone()).filter(|zone| !zone.is_empty());
    if let Some(zone) = zone {
        endpoint.insert("zone", zone);
    }

    if let Some(hostname) = service.hostname_of(pod) {
        endpoint.insert("hostname", hostname.clone());
    }
    if ready && let Some(hints) = hints(service, pod, zone) {
        endpoint.insert("hints", hints);
    }

    Value::Object(endpoint)
}

/// The reference to the pod of an address.
pub(crate) fn target(pod: &Cached<Pod>) -> Value {
    let mut target = Map::new();
    target.insert("kind", "Pod");
    target.insert("namespace", pod.key.namespace.clone());
    target.insert("name", pod.key.name.clone());
    target.insert("uid", pod.uid.clone());
    Value::Object(target)
}

/// The hints for an endpoint, if the Service prefers close ones.
fn hints(service: &Service, pod: &Pod, zone: Option<&str>) -> Option<Value> {
    if topology::wants(service) {
        return None;
    }

    let same_node = match service.text("trafficDistribution") {
        "PreferSameNode" => true,
        "PreferClose" | "PreferSameZone" => false,
        _ => return None,
    };

    let named = |name: &str| {
        let mut named = Map::new();
        named.insert("name", name);
        vec![Value::Object(named)]
    };

    let mut hints = Map::new();
    if let Some(zone) = zone {
        hints.insert("forZones", named(zone));
    }
    if same_node && !pod.node.is_empty() {
        hints.insert("forNodes", named(&pod.node));
    }

    (!hints.is_empty()).then_some(Value::Object(hints))
}
