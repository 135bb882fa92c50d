//! What the kernel of a node should have, given all nodes. Pure.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use coracle_netlink::Version;
use coracle_netlink::route::{Mac, Tunnel, Vxlan};
use ipnet::IpNet;

use crate::node::Node;

/// When packets between nodes are encapsulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    Never,
    /// Where the other node is on another segment.
    #[default]
    CrossSubnet,
    Always,
}

/// The UDP port of VXLAN, the kernel's default and that of flannel.
pub const PORT: u16 = 8472;

/// What is known of this machine's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// How packets get to the addresses of other nodes.
    pub paths: BTreeMap<IpAddr, Path>,
    /// The MTU of the interface that leads out of this machine.
    pub uplink_mtu: u32,
    /// The networks of the pods' bridge.
    pub bridge: Vec<IpNet>,
}

/// How packets get to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    pub interface: u32,
    /// Whether the address is on the interface's segment, where a frame with any IP packet can be
    /// sent to it.
    pub is_direct: bool,
    pub mtu: u32,
}

/// What the kernel should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// VXLAN interfaces, by the IP version of the packets between nodes.
    pub devices: BTreeMap<Version, Device>,
    /// Routes to the pods of other nodes.
    pub routes: BTreeMap<IpNet, Way>,
    pub pod_mtu: u32,
    pub masquerade: Masquerade,
    pub problems: Vec<Problem>,
}

/// A VXLAN interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub vxlan: Vxlan,
    pub mtu: u32,
    /// The node's addresses as seen from pods behind the tunnel.
    pub addresses: Vec<IpNet>,
    /// Where frames go, by hardware address.
    pub tunnels: BTreeMap<Mac, Tunnel>,
    /// The hardware addresses of gateways.
    pub neighbours: BTreeMap<IpAddr, Mac>,
}

/// The way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Direct {
        gateway: IpAddr,
        interface: u32,
    },
    /// Through the VXLAN interface of this version.
    Encapsulated {
        version: Version,
        gateway: IpAddr,
    },
}

/// Packets from `from` to anywhere but `inside` get the node's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masquerade {
    pub from: Vec<IpNet>,
    pub inside: Vec<IpNet>,
}

/// Why the pods of a node, or some of them, cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("node {node}: its pod range {range} overlaps that of node {other}")]
    Overlap {
        node: String,
        range: IpNet,
        other: String,
    },
    #[error("node {node}: no route to its internal addresses; pods in {range} cannot be reached")]
    NoPath { node: String, range: IpNet },
    #[error(
        "node {node} is on another segment and --encapsulation is never; pods in {range} cannot be reached"
    )]
    OtherSegment { node: String, range: IpNet },
}

/// What this node's kernel should have. `ranges` are not masqueraded, besides those of the nodes.
pub fn plan(
    own: &Node,
    others: &[Node],
    machine: &Machine,
    mode: Encapsulation,
    ranges: &[IpNet],
) -> Plan {
    let (peers, mut problems) = claims(own, others);
    let mut routes = BTreeMap::new();
    let mut devices = BTreeMap::new();

    for peer in &peers {
        for range in &peer.ranges {
            let found = way(own, peer, *range, machine, mode);
            match found {
                Ok(way @ Way::Direct { .. }) => {
                    routes.insert(*range, way);
                }
                Ok(way @ Way::Encapsulated { version, gateway }) => {
                    let Some(device) = device(&mut devices, version, own) else {
                        continue;
                    };
                    encapsulate(device, peer, version, gateway, machine);
                    routes.insert(*range, way);
                }
                Err(problem) => problems.push(problem),
            }
        }
    }

    Plan {
        pod_mtu: pod_mtu(own, &devices, machine, mode),
        masquerade: masquerade(own, &peers, machine, mode, ranges),
        devices,
        routes,
        problems,
    }
}

/// A node that can be reached, with the addresses and ranges that are its own.
struct Peer<'a> {
    name: &'a str,
    ranges: Vec<IpNet>,
    addresses: Vec<IpAddr>,
    identity: Option<Identity>,
}

/// The other nodes without ranges that belong to another node already, and without addresses in a
/// range of pods, which lead nowhere.
fn claims<'a>(own: &Node, others: &'a [Node]) -> (Vec<Peer<'a>>, Vec<Problem>) {
    let mut taken: Vec<(IpNet, &str)> = own
        .ranges
        .iter()
        .map(|range| (*range, own.name.as_str()))
        .collect();
    let (mut peers, mut problems) = (Vec::new(), Vec::new());
    let mut sorted: Vec<&Node> = others.iter().filter(|node| node.name != own.name).collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));

    for node in sorted {
        let conflict = node.ranges.iter().find_map(|range| {
            let other = taken.iter().find(|(other, _)| overlap(range, other))?;
            Some((*range, other.1.to_owned()))
        });

        // Another range of such a node could be reached, but not be told apart in the VXLAN.
        let ranges = match conflict {
            None => node.ranges.clone(),
            Some((range, other)) => {
                problems.push(Problem::Overlap {
                    node: node.name.clone(),
                    range,
                    other,
                });
                Vec::new()
            }
        };

        taken.extend(ranges.iter().map(|range| (*range, node.name.as_str())));
        peers.push(Peer {
            name: &node.name,
            addresses: node.addresses.clone(),
            identity: identity(&ranges),
            ranges,
        });
    }

    for peer in &mut peers {
        peer.addresses
            .retain(|address| !taken.iter().any(|(range, _)| range.contains(address)));
    }

    (peers, problems)
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

fn way(
    own: &Node,
    peer: &Peer<'_>,
    range: IpNet,
    machine: &Machine,
    mode: Encapsulation,
) -> Result<Way, Problem> {
    let version = Version::of(range.addr());
    let direct = || {
        let gateway = address(&peer.addresses, version)?;
        let path = machine.paths.get(&gateway).filter(|path| path.is_direct)?;
        Some(Way::Direct {
            gateway,
            interface: path.interface,
        })
    };

    let encapsulated = || {
        let version = tunnel_version(own, peer)?;
        let target = address(&peer.addresses, version)?;
        machine.paths.get(&target)?;
        Some(Way::Encapsulated {
            version,
            gateway: tunnel_gateway(range, peer.identity?.mac),
        })
    };

    let node = || peer.name.to_owned();
    let found = match mode {
        Encapsulation::Never => {
            return direct().ok_or_else(|| Problem::OtherSegment {
                node: node(),
                range,
            });
        }
        Encapsulation::CrossSubnet => direct().or_else(encapsulated),
        Encapsulation::Always => encapsulated(),
    };

    found.ok_or_else(|| Problem::NoPath {
        node: node(),
        range,
    })
}

/// The address of a node behind a tunnel, as gateway of the route to its range. The kernel refuses an
/// IPv6 gateway to which another interface has a route, as a network of that range has while the
/// node was on this segment; it takes any that is link-local.
fn tunnel_gateway(range: IpNet, mac: Mac) -> IpAddr {
    match range {
        IpNet::V4(range) => range.network().into(),
        IpNet::V6(_) => link_local(mac).into(),
    }
}

/// The link-local address of an interface with this hardware address.
fn link_local([a, b, c, d, e, f]: Mac) -> Ipv6Addr {
    let pair = |one: u8, other: u8| u16::from_be_bytes([one, other]);
    let (first, second) = (pair(a ^ 2, b), pair(c, 0xff));
    Ipv6Addr::new(0xfe80, 0, 0, 0, first, second, pair(0xfe, d), pair(e, f))
}

/// The version of the packets between two nodes: one that both have, and that both choose.
fn tunnel_version(own: &Node, peer: &Peer<'_>) -> Option<Version> {
    Version::BOTH.into_iter().find(|version| {
        address(&own.addresses, *version).is_some() && address(&peer.addresses, *version).is_some()
    })
}

fn address(all: &[IpAddr], version: Version) -> Option<IpAddr> {
    all.iter()
        .copied()
        .find(|address| Version::of(*address) == version)
}

/// The interface of a version, made for the first node behind it; none while this node has no
/// range.
fn device<'a>(
    devices: &'a mut BTreeMap<Version, Device>,
    version: Version,
    own: &Node,
) -> Option<&'a mut Device> {
    let Identity { mac, identifier } = identity(&own.ranges)?;
    let new = || Device {
        vxlan: Vxlan {
            mac,
            identifier,
            port: PORT,
        },
        mtu: u32::MAX,
        addresses: own
            .ranges
            .iter()
            .map(|range| IpNet::from(range.network()))
            .collect(),
        tunnels: BTreeMap::new(),
        neighbours: BTreeMap::new(),
    };

    Some(devices.entry(version).or_insert_with(new))
}

fn encapsulate(
    device: &mut Device,
    peer: &Peer<'_>,
    version: Version,
    gateway: IpAddr,
    machine: &Machine,
) {
    let target = address(&peer.addresses, version);
    let Some(((target, path), identity)) = target
        .and_then(|target| Some((target, machine.paths.get(&target)?)))
        .zip(peer.identity)
    else {
        return;
    };

    device.mtu = device.mtu.min(path.mtu.saturating_sub(overhead(version)));
    device.neighbours.insert(gateway, identity.mac);
    device.tunnels.insert(
        identity.mac,
        Tunnel {
            mac: identity.mac,
            address: target,
            identifier: Some(identity.identifier),
        },
    );
}

/// The bytes of the outer headers: IP, UDP, VXLAN, Ethernet.
fn overhead(version: Version) -> u32 {
    match version {
        Version::V4 => 20 + 8 + 8 + 14,
        Version::V6 => 40 + 8 + 8 + 14,
    }
}

/// What pods may send in one packet, wherever it goes.
fn pod_mtu(
    own: &Node,
    devices: &BTreeMap<Version, Device>,
    machine: &Machine,
    mode: Encapsulation,
) -> u32 {
    let used = devices.values().map(|device| device.mtu);
    let direct = machine.paths.values().filter(|path| path.is_direct);
    let direct = direct.map(|path| path.mtu);
    // The first node of a cluster that always encapsulates has no interface yet.
    let expected = own
        .addresses
        .first()
        .filter(|_| mode == Encapsulation::Always);
    let expected = expected.map(|address| {
        machine.uplink_mtu - overhead(Version::of(*address)).min(machine.uplink_mtu)
    });
    used.chain(direct)
        .chain(expected)
        .fold(machine.uplink_mtu, |least, mtu| least.min(mtu))
}

/// What pods send to pods and to the nodes of their segment keeps its source. Nodes of other
/// segments get the node's address: routers between them need not know the addresses of pods.
fn masquerade(
    own: &Node,
    peers: &[Peer<'_>],
    machine: &Machine,
    mode: Encapsulation,
    ranges: &[IpNet],
) -> Masquerade {
    let is_direct = |address: &&IpAddr| {
        mode != Encapsulation::Always
            && machine
                .paths
                .get(*address)
                .is_some_and(|path| path.is_direct)
    };
    let pods = own
        .ranges
        .iter()
        .chain(peers.iter().flat_map(|peer| &peer.ranges))
        .chain(ranges)
        .copied();
    let nodes = peers
        .iter()
        .flat_map(|peer| &peer.addresses)
        .filter(is_direct)
        .chain(&own.addresses)
        .map(|address| IpNet::from(*address));

    let mut from = [own.ranges.as_slice(), &machine.bridge].concat();
    from.iter_mut().for_each(|range| *range = range.trunc());

    Masquerade {
        from: IpNet::aggregate(&from),
        inside: IpNet::aggregate(&pods.chain(nodes).collect()),
    }
}

/// What identifies a node in the VXLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    mac: Mac,
    identifier: u32,
}

/// Follows from the node's first range, which no other node has, also not of another cluster on
/// the same machine: two interfaces of one machine cannot receive under the same identifier.
fn identity(ranges: &[IpNet]) -> Option<Identity> {
    let range = ranges.first()?;
    let hash = hash(range);
    let identity = match range {
        IpNet::V4(range) => {
            let [a, b, c, d] = range.network().octets();
            let network = u32::from_be_bytes([0, a, b, c]);
            let whole = range.prefix_len() <= 24 && network != 0;
            Identity {
                mac: [0x0e, 0x58, a, b, c, d],
                identifier: if whole { network } else { low(hash) },
            }
        }
        IpNet::V6(_) => {
            let [a, b, c, d, e, ..] = hash.to_be_bytes();
            Identity {
                mac: [0x0e, a, b, c, d, e],
                identifier: low(hash),
            }
        }
    };
    Some(identity)
}

/// An identifier has 24 bits, of which some must be set.
fn low(hash: u64) -> u32 {
    let [.., a, b, c] = hash.to_be_bytes();
    u32::from_be_bytes([0, a, b, c]).max(1)
}

/// FNV-1a of the range's address and length. All nodes must compute the same.
fn hash(range: &IpNet) -> u64 {
    let octets = match range.network() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    octets
        .into_iter()
        .chain([range.prefix_len()])
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
