mod difference;
mod machines;
mod plan;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::node::Node;
use crate::plan::{Machine, Path};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn node(name: &str, ranges: &[&str], addresses: &[&str]) -> Node {
    Node {
        name: name.to_owned(),
        ranges: ranges.iter().map(|text| net(text)).collect(),
        addresses: addresses.iter().map(|text| ip(text)).collect(),
    }
}

const INTERFACE: u32 = 2;

/// A machine whose segments are 192.0.2.0/24 and 2001:db8:2::/64, with an MTU of 1500. Other
/// addresses are behind a router.
fn machine(nodes: &[Node]) -> Machine {
    let addresses = nodes.iter().flat_map(|node| &node.addresses);
    let paths: BTreeMap<IpAddr, Path> = addresses
        .map(|address| {
            let is_direct =
                net("192.0.2.0/24").contains(address) || net("2001:db8:2::/64").contains(address);
            let path = Path {
                interface: INTERFACE,
                is_direct,
                mtu: 1500,
            };
            (*address, path)
        })
        .collect();

    Machine {
        paths,
        uplink_mtu: 1500,
        bridge: Vec::new(),
    }
}
