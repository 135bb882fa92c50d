//! The proxy's node.

use std::net::IpAddr;

use coracle_api::{Text, Value};
use ipnet::IpNet;

use crate::rules::Family;

/// The fields that the proxy uses of its Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: Text,
    /// Empty: unknown.
    pub zone: Text,
    /// Its primary addresses, at most one per family.
    pub addresses: Vec<IpAddr>,
    /// Its pod CIDRs.
    pub pod_ranges: Vec<IpNet>,
    /// Whether load balancers should use another node, because this one is being removed.
    pub leaving: bool,
}

const ZONE: &str = "topology.kubernetes.io/zone";
/// The taint of a node that the cluster autoscaler is going to remove.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

impl Node {
    /// Reads a core/v1 Node.
    pub fn read(tree: &Value) -> Node {
        let meta = tree.meta();
        let spec = tree.get("spec").and_then(Value::as_object);
        let status = tree.get("status").and_then(Value::as_object);
        let ranges = spec.map(|spec| spec.items("podCIDRs")).unwrap_or_default();
        let taints = spec.map(|spec| spec.items("taints")).unwrap_or_default();
        let deleted = tree
            .get("metadata")
            .and_then(|meta| meta.get("deletionTimestamp"))
            .is_some();

        let tainted = taints
            .iter()
            .filter_map(Value::as_object)
            .any(|taint| taint.text("key") == TO_BE_DELETED);

        Node {
            name: Text::new(meta.name()),
            zone: Text::new(meta.label(ZONE).unwrap_or_default()),
            addresses: addresses(
                status
                    .map(|status| status.items("addresses"))
                    .unwrap_or_default(),
            ),
            pod_ranges: ranges
                .iter()
                .filter_map(|range| range.as_str()?.parse().ok())
                .collect(),
            leaving: deleted || tainted,
        }
    }
}

/// The first internal address of each family, or else the first external one.
fn addresses(items: &[Value]) -> Vec<IpAddr> {
    let of_type = |kind: &'static str| {
        let entries = items
            .iter()
            .filter_map(Value::as_object)
            .filter(move |entry| entry.text("type") == kind);
        entries.filter_map(|entry| entry.text("address").parse::<IpAddr>().ok())
    };

    let known: Vec<IpAddr> = of_type("InternalIP").chain(of_type("ExternalIP")).collect();
    let first = |family| {
        known
            .iter()
            .find(|address| Family::of(**address) == family)
            .copied()
    };

    Family::BOTH.into_iter().filter_map(first).collect()
}
