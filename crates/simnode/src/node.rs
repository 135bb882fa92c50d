//! A simulated node: its object, its lease, its addresses, and its projection.

use std::sync::Arc;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use coracle_api::codec::json;
use coracle_api::resource_version::ResourceVersion;
use coracle_api::time::{MicroTime, Time, Timestamp};
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::Projection;
use ipnet::{IpNet, Ipv4Net};

use crate::profile::SIMULATE;

/// The label value of a node that appears dead: it renews nothing, and its pods do not change.
const DEAD: &str = "dead";
/// Names are this and a number.
const PREFIX: &str = "sim-";
/// Nodes are spread over this many zones.
const ZONES: usize = 3;
/// The lease duration, that of a kubelet.
const LEASE_SECONDS: i64 = 40;

/// The name of a node.
pub(crate) fn name(index: usize) -> String {
    format!("{PREFIX}{index:04}")
}

/// The index of the node with this name.
pub(crate) fn index(name: &str) -> Option<usize> {
    let index = name.strip_prefix(PREFIX)?.parse().ok()?;
    (self::name(index) == name).then_some(index)
}

/// Its own address, in the range reserved for network tests.
pub(crate) fn address(index: usize) -> IpAddr {
    let last = u32::try_from(index).unwrap_or(u32::MAX) & 0x0001_ffff;
    IpAddr::V4(Ipv4Addr::from(
        u32::from(Ipv4Addr::new(198, 18, 0, 1)).wrapping_add(last),
    ))
}

/// The addresses of its pods, if the cluster assigns none.
pub(crate) fn own_range(index: usize) -> IpNet {
    let high = u32::try_from(index).unwrap_or(u32::MAX) & 0x7fff;
    let first = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 128, 0, 0)) | (high << 8));
    IpNet::V4(Ipv4Net::new(first, 24).expect("24 bits are a prefix"))
}

/// The address at an offset of a range.
pub(crate) fn address_at(range: &IpNet, offset: u32) -> IpAddr {
    match range {
        IpNet::V4(range) => IpAddr::V4(Ipv4Addr::from(
            u32::from(range.network()).wrapping_add(offset),
        )),
        IpNet::V6(range) => IpAddr::V6(Ipv6Addr::from(
            u128::from(range.network()).wrapping_add(offset.into()),
        )),
    }
}

/// The offset of an address in a range.
pub(crate) fn offset_of(range: &IpNet, address: IpAddr) -> Option<u32> {
    if !range.contains(&address) {
        return None;
    }

    match (range, address) {
        (IpNet::V4(range), IpAddr::V4(address)) => {
            Some(u32::from(address) - u32::from(range.network()))
        }
        (IpNet::V6(range), IpAddr::V6(address)) => {
            u32::try_from(u128::from(address) - u128::from(range.network())).ok()
        }
        _ => None,
    }
}

/// Builds the Node object for registration.
pub(crate) fn object(index: usize, version: &str, now: Timestamp) -> Value {
    let (name, address, zone) = (name(index), address(index), index % ZONES);
    let (arch, status) = (architecture(), status(version, now));
    parsed(&format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}","labels":{{
        "kubernetes.io/hostname":"{name}","kubernetes.io/os":"linux","kubernetes.io/arch":"{arch}",
        "node.kubernetes.io/instance-type":"simulated","topology.kubernetes.io/region":"simulated",
        "topology.kubernetes.io/zone":"simulated-{zone}"}}}},"spec":{{}},"status":{{
        "addresses":[{{"type":"InternalIP","address":"{address}"}},{{"type":"Hostname","address":"{name}"}}],{status}}}}}"#
    ))
}

/// The status patch of a node that was marked as not ready.
pub(crate) fn status_patch(version: &str, now: Timestamp) -> Value {
    parsed(&format!(r#"{{"status":{{{}}}}}"#, status(version, now)))
}

fn status(version: &str, now: Timestamp) -> String {
    let (arch, now) = (architecture(), Time(now).text());
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","reason":"{reason}","message":"{message}",
            "lastHeartbeatTime":"{now}","lastTransitionTime":"{now}"}}"#
        )
    };

    let conditions = [
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        condition(
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ),
    ]
    .join(",");

    let room = r#"{"cpu":"32","memory":"128Gi","ephemeral-storage":"1Ti","pods":"110"}"#;
    format!(
        r#""capacity":{room},"allocatable":{room},"conditions":[{conditions}],"nodeInfo":{{"machineID":"","systemUUID":"",
        "bootID":"","kernelVersion":"simulated","osImage":"simulated","containerRuntimeVersion":"simulated://1",
        "kubeletVersion":"{version}","kubeProxyVersion":"","operatingSystem":"linux","architecture":"{arch}"}}"#
    )
}

/// Go's name of the architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A node's lease, renewed now; `version` is the known one, zero if there is none yet.
pub(crate) fn lease(index: usize, uid: &str, version: ResourceVersion, now: Timestamp) -> Value {
    let (name, now) = (name(index), MicroTime(now).text());
    let mut lease = parsed(&format!(
        r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{name}","namespace":"kube-node-lease",
        "ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"{name}","uid":"{uid}"}}]}},
        "spec":{{"holderIdentity":"{name}","leaseDurationSeconds":{LEASE_SECONDS},"renewTime":"{now}"}}}}"#
    ));
    if version != ResourceVersion::default() {
        lease.meta_mut().set_resource_version(version);
    }
    lease
}

fn parsed(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("the literal is valid JSON, and its values need no escapes")
}

/// The projection of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    /// The profile of its pods, unless they have their own.
    pub(crate) profile: Option<Text>,
    /// Whether it appears dead.
    pub(crate) is_dead: bool,
    /// Whether it is ready.
    pub(crate) is_ready: bool,
    /// The ranges of its pods.
    pub(crate) ranges: Vec<IpNet>,
}

impl Projection for Node {
    fn project(object: &Arc<Value>) -> Result<Node, TypedError> {
        let empty = Map::new();
        let below = |name: &str| {
            object
                .get(name)
                .and_then(Value::as_object)
                .unwrap_or(&empty)
        };

        let label = object.meta().label(SIMULATE);
        let ranges = below("spec")
            .items("podCIDRs")
            .iter()
            .filter_map(|range| range.as_str()?.parse().ok());

        let ready = |condition: &Value| {
            let text = |name: &str| condition.get(name).and_then(Value::as_str);
            text("type") == Some("Ready") && text("status") == Some("True")
        };

        Ok(Node {
            profile: label.filter(|label| *label != DEAD).map(Text::new),
            is_dead: label == Some(DEAD),
            is_ready: below("status").items("conditions").iter().any(ready),
            ranges: ranges.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_follow_from_the_number() {
        assert_eq!(
            (name(7).as_str(), name(12345).as_str()),
            ("sim-0007", "sim-12345")
        );

        assert_eq!(
            (index("sim-0007"), index("sim-7"), index("other")),
            (Some(7), None, None)
        );

        assert_eq!(address(256).to_string(), "198.18.1.1");
        assert_eq!(own_range(257).to_string(), "10.129.1.0/24");

        let range: IpNet = "fd00:1::/64".parse().unwrap();
        assert_eq!(address_at(&range, 9).to_string(), "fd00:1::9");
        assert_eq!(offset_of(&range, "fd00:1::9".parse().unwrap()), Some(9));
        assert_eq!(
            offset_of(&own_range(0), "10.128.1.9".parse().unwrap()),
            None
        );
    }

    #[test]
    fn a_registered_node_is_projected_as_ready() {
        let mut node = object(3, "v1.36.0", Timestamp::from_unix(1_772_366_400, 0));
        assert!(Node::project(&node.clone().into()).unwrap().is_ready);
        node.meta_mut().set_label(SIMULATE, Some("dead"));
        assert!(Node::project(&node.into()).unwrap().is_dead);
    }
}
