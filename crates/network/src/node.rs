//! What matters of a Node object.

use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::typed::TypedError;
use coracle_client::Projection;
use ipnet::IpNet;

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// `spec.podCIDRs`, of at most one per IP version.
    pub ranges: Vec<IpNet>,
    /// Its internal addresses, in order.
    pub addresses: Vec<IpAddr>,
}

impl Projection for Node {
    fn project(object: &Arc<Value>) -> Result<Node, TypedError> {
        let texts = |path: &[&str]| {
            let items = object.at(path).and_then(Value::as_array);
            items.unwrap_or_default().iter().filter_map(Value::as_str)
        };

        let several: Vec<IpNet> = texts(&["spec", "podCIDRs"]).filter_map(range).collect();
        let single = object.at(&["spec", "podCIDR"]).and_then(Value::as_str);
        let ranges = match several.is_empty() {
            true => single.and_then(range).into_iter().collect(),
            false => several,
        };

        let runtime = object.at(&["status", "nodeInfo", "containerRuntimeVersion"]);
        let runtime = runtime.and_then(Value::as_str).unwrap_or_default();
        if runtime.starts_with(SIMULATED) {
            return Ok(Node {
                name: object.meta().name().to_owned(),
                ranges: Vec::new(),
                addresses: Vec::new(),
            });
        }

        Ok(Node {
            name: object.meta().name().to_owned(),
            ranges,
            addresses: addresses(object),
        })
    }
}

/// Such a node exists in the API only: nothing is sent to it.
const SIMULATED: &str = "simulated:";

fn range(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().map(|range| range.trunc())
}

fn addresses(node: &Value) -> Vec<IpAddr> {
    let listed = node
        .at(&["status", "addresses"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    let text = |entry: &Value, key| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    listed
        .iter()
        .filter(|entry| text(entry, "type") == "InternalIP")
        .filter_map(|entry| text(entry, "address").parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn ranges_and_internal_addresses_are_read() {
        let check = |object: &str, ranges: &[&str], addresses: &[&str]| {
            let object = Arc::new(json::parse(object.as_bytes()).unwrap());
            let node = Node::project(&object).unwrap();
            let text = |all: &[IpNet]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(text(&node.ranges), ranges);
            let found: Vec<String> = node.addresses.iter().map(ToString::to_string).collect();
            assert_eq!(found, addresses);
        };

        check(r#"{"metadata":{"name":"a"}}"#, &[], &[]);
        check(
            r#"{"metadata":{"name":"a"},"spec":{"podCIDR":"10.244.0.0/24"},"status":{"nodeInfo":
               {"containerRuntimeVersion":"simulated://1"},"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}"#,
            &[],
            &[],
        );
        check(
            r#"{"metadata":{"name":"a"},"spec":{"podCIDR":"10.244.0.0/24"}}"#,
            &["10.244.0.0/24"],
            &[],
        );
        check(
            r#"{"metadata":{"name":"a"},"spec":{"podCIDR":"10.244.0.0/24","podCIDRs":["10.244.0.0/24","fd00:0:0:1::/64","x"]},
               "status":{"addresses":[{"type":"Hostname","address":"a"},{"type":"InternalIP","address":"192.0.2.1"},
               {"type":"ExternalIP","address":"198.51.100.1"},{"type":"InternalIP","address":"2001:db8::1"}]}}"#,
            &["10.244.0.0/24", "fd00:0:0:1::/64"],
            &["192.0.2.1", "2001:db8::1"],
        );
    }
}
