//! What the kernel is to hold: a set of [`Item`]s, each with its [`Body`].
//!
//! Packets find their way by maps, not by lists of rules. `Service` leads from an address to a
//! chain; there are few chains, because one serves all Services of the same [shape](Chain): how
//! many endpoints there are and whose source is hidden. The chain rolls a die with as many sides;
//! all first endpoints are in one map, by the addresses of their Services, all second ones in the
//! next, and so on. So most changes of a Service are a handful of map elements. Only Services that
//! remember their clients have chains of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use coracle_client::ObjectKey;
use ipnet::IpNet;

/// Of which family an address is. Each has a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const BOTH: [Family; 2] = [Family::V4, Family::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Family {
        if address.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        }
    }
}

/// What Services speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    /// By its name in the API; no name is TCP.
    pub fn read(name: &str) -> Option<Protocol> {
        match name {
            "" | "TCP" => Some(Protocol::Tcp),
            "UDP" => Some(Protocol::Udp),
            "SCTP" => Some(Protocol::Sctp),
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        })
    }
}

/// Where clients reach a port of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frontend {
    /// At an address of its own: the cluster's, an external one, a load balancer's.
    Address {
        ip: IpAddr,
        protocol: Protocol,
        port: u16,
    },
    /// At a port of the node.
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

/// By what a packet is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entrance {
    Address,
    NodePort,
}

/// Which endpoints of a Service are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Those of the whole cluster.
    Cluster,
    /// Those on this node.
    Local,
}

/// A port of a Service that remembers its clients, in one family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sticky {
    pub service: Arc<ObjectKey>,
    pub family: Family,
    pub protocol: Protocol,
    pub port: u16,
    /// For how long a client is remembered.
    pub seconds: u32,
}

/// The endpoints of one number, of all Services of one family that are recognized the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numbered {
    pub family: Family,
    pub entrance: Entrance,
    pub pool: Pool,
    pub number: usize,
}

/// Where a packet for a Service goes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chain {
    /// To one of so many endpoints of a pool.
    Pick {
        family: Family,
        entrance: Entrance,
        pool: Pool,
        count: usize,
    },
    /// To the endpoint of this number.
    Numbered(Numbered),
    /// To one of so many endpoints of the cluster, with the node's address as its source: the
    /// answer must come back here.
    Masqueraded {
        family: Family,
        entrance: Entrance,
        count: usize,
    },
    /// `externalTrafficPolicy: Local`. Pods and the node itself reach the whole cluster, as if the
    /// packet had gone out to a load balancer and come back; everybody else the endpoints here,
    /// with the source kept. Without any here it goes on, and is dropped later.
    LocalFirst {
        family: Family,
        entrance: Entrance,
        cluster: usize,
        local: usize,
    },
    /// To the endpoint that this client had before, or to one of the pool.
    Remembered { of: Sticky, pool: Pool },
    /// What [`Chain::Masqueraded`] and [`Chain::LocalFirst`] are, for a Service that remembers its
    /// clients.
    RememberedOutside { of: Sticky },
    /// To one endpoint, which is remembered.
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

/// One thing that the kernel holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    Chain(Chain),
    /// The map of the endpoints of one number.
    Endpoints(Numbered),
    /// The clients that one endpoint has had of late.
    Clients {
        of: Sticky,
        backend: SocketAddr,
    },
    /// An address that is a Service's own.
    ClusterIp(IpAddr),
    /// Where a frontend leads to.
    Service(Frontend),
    /// An endpoint of a frontend, by its number: an element of [`Item::Endpoints`].
    Endpoint {
        of: Frontend,
        pool: Pool,
        number: usize,
    },
    /// A frontend that leads nowhere, or for some nowhere.
    Unserved(Frontend),
    /// A load balancer's address that only [`Item::Allowed`] sources may use.
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
    /// An endpoint that may find itself behind its own Service.
    Hairpin {
        backend: SocketAddr,
        protocol: Protocol,
    },
    /// Addresses of the node at which ports of the node answer.
    NodePortRange(IpNet),
    /// Addresses that only Services have.
    ServiceRange(IpNet),
    /// Addresses of pods.
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

/// What an [`Item`] is, beyond that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Its name says it all.
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

/// How a Service that remembers its clients is reached from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The whole cluster, with the source hidden.
    Cluster,
    /// The endpoints here; whether there are any.
    Local { any: bool },
}

/// What becomes of a packet that no endpoint can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client is told at once.
    Reject,
    /// Nobody is told: a load balancer is to try another node.
    Drop,
}

/// Everything that the kernel is to hold.
pub type RuleSet = BTreeMap<Item, Body>;
