//! The rules in the kernel: a set of [`Item`]s, each with its [`Body`].
//!
//! Packets are dispatched by maps, not by lists of rules. `Service` maps an address to a chain;
//! there are few chains, because all Services of the same [shape](Chain) share one: the number of
//! endpoints and the masquerading. The chain selects a number at random; the endpoints with the
//! same number of all Services are in one map, keyed by the Service's address. So most changes of a
//! Service are a few map elements. Only Services with session affinity have their own chains.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use coracle_client::ObjectKey;
/// The family of an address. Each has its own table.
pub use coracle_netlink::Version as Family;
pub use coracle_netlink::nftables::Protocol;
use ipnet::IpNet;

/// Parses the API's name of a protocol; empty means TCP.
pub fn protocol(name: &str) -> Option<Protocol> {
    match name {
        "" | "TCP" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        _ => None,
    }
}

/// Where clients reach a port of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frontend {
    /// A cluster IP, external IP or load balancer IP.
    Address {
        ip: IpAddr,
        protocol: Protocol,
        port: u16,
    },
    /// A NodePort.
    NodePort {
        family: Family,
        protocol: Protocol,
        port: u16,
    },
}

impl Frontend {
    pub fn family(&self) -> Family {
        match self {
            Frontend::Address { ip, .. } => Family::of(*ip),
            Frontend::NodePort { family, .. } => *family,
        }
    }

    pub fn entrance(&self) -> Entrance {
        match self {
            Frontend::Address { .. } => Entrance::Address,
            Frontend::NodePort { .. } => Entrance::NodePort,
        }
    }
}

/// How packets are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entrance {
    Address,
    NodePort,
}

/// The endpoints of a Service that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Those of the whole cluster.
    Cluster,
    /// Those on this node.
    Local,
}

/// A Service port with session affinity, in one family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sticky {
    pub service: Arc<ObjectKey>,
    pub family: Family,
    pub protocol: Protocol,
    pub port: u16,
    /// The affinity timeout.
    pub seconds: u32,
}

/// The endpoints with one number, of all Services of a family with the same kind of match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numbered {
    pub family: Family,
    pub entrance: Entrance,
    pub pool: Pool,
    pub number: usize,
}

/// A chain for packets to a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chain {
    /// Selects one of `count` endpoints of a pool.
    Pick {
        family: Family,
        entrance: Entrance,
        pool: Pool,
        count: usize,
    },
    /// Sends to the endpoint with this number.
    Numbered(Numbered),
    /// Selects one of `count` cluster endpoints and masquerades: replies must pass this node.
    Masqueraded {
        family: Family,
        entrance: Entrance,
        count: usize,
    },
    /// `externalTrafficPolicy: Local`. Pods and the node itself reach cluster-wide endpoints, as
    /// through a load balancer; others only local endpoints, with the source kept. Without local
    /// endpoints the packet is dropped later.
    LocalFirst {
        family: Family,
        entrance: Entrance,
        cluster: usize,
        local: usize,
    },
    /// Sends to the client's previous endpoint, or to one of the pool.
    Remembered { of: Sticky, pool: Pool },
    /// [`Chain::Masqueraded`] or [`Chain::LocalFirst`] with session affinity.
    RememberedOutside { of: Sticky },
    /// Sends to one endpoint, and stores the client.
    Remember { of: Sticky, backend: SocketAddr },
}

impl Chain {
    pub fn family(&self) -> Family {
        match self {
            Chain::Pick { family, .. } | Chain::Masqueraded { family, .. } => *family,
            Chain::LocalFirst { family, .. } => *family,
            Chain::Numbered(of) => of.family,
            Chain::Remembered { of, .. }
            | Chain::RememberedOutside { of }
            | Chain::Remember { of, .. } => of.family,
        }
    }
}

/// A rule in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    Chain(Chain),
    /// The map of endpoints with one number.
    Endpoints(Numbered),
    /// The recent clients of one endpoint.
    Clients {
        of: Sticky,
        backend: SocketAddr,
    },
    /// A cluster IP.
    ClusterIp(IpAddr),
    /// Maps a frontend to a chain.
    Service(Frontend),
    /// An endpoint of a frontend, by its number: an element of [`Item::Endpoints`].
    Endpoint {
        of: Frontend,
        pool: Pool,
        number: usize,
    },
    /// A frontend without endpoints, for some or all clients.
    Unserved(Frontend),
    /// A load balancer IP restricted to [`Item::Allowed`] sources.
    Guarded {
        ip: IpAddr,
        protocol: Protocol,
        port: u16,
    },
    Allowed {
        ip: IpAddr,
        protocol: Protocol,
        port: u16,
        from: IpNet,
    },
    /// An endpoint that may reach itself through its Service.
    Hairpin {
        backend: SocketAddr,
        protocol: Protocol,
    },
    /// Node addresses for NodePorts.
    NodePortRange(IpNet),
    /// Service CIDRs.
    ServiceRange(IpNet),
    /// Pod CIDRs.
    PodRange(IpNet),
}

impl Item {
    pub fn family(&self) -> Family {
        match self {
            Item::Chain(chain) => chain.family(),
            Item::Endpoints(of) => of.family,
            Item::Clients { of, .. } => of.family,
            Item::ClusterIp(ip) | Item::Guarded { ip, .. } | Item::Allowed { ip, .. } => {
                Family::of(*ip)
            }
            Item::Service(at) | Item::Endpoint { of: at, .. } | Item::Unserved(at) => at.family(),
            Item::Hairpin { backend, .. } => Family::of(backend.ip()),
            Item::NodePortRange(net) | Item::ServiceRange(net) | Item::PodRange(net) => {
                Family::of(net.addr())
            }
        }
    }
}

/// The value of an [`Item`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// None.
    Plain,
    /// Of [`Item::Service`].
    Goto(Chain),
    /// Of [`Item::Endpoint`].
    Backend(SocketAddr),
    /// Of [`Item::Unserved`].
    Refuse(Refusal),
    /// Of [`Chain::Remembered`]: the endpoints.
    Backends(Vec<SocketAddr>),
    /// Of [`Chain::RememberedOutside`].
    Outside(Outside),
}

/// External access to a Service with session affinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Cluster-wide, masqueraded.
    Cluster,
    /// Local endpoints; whether there are any.
    Local { any: bool },
}

/// What happens to a packet without an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is rejected.
    Reject,
    /// It is dropped: a load balancer should use another node.
    Drop,
}

/// All rules.
pub type RuleSet = BTreeMap<Item, Body>;
