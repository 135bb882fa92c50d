//! One pod's network.
//!
//! A runtime makes a network namespace and hands it to a [`PodNetwork`], which makes it a member of
//! the cluster's network: an interface, addresses, routes, ports of the host. There are two: the
//! built-in [`Bridge`], and foreign plugins behind the container network interface
//! ([`CniNetwork`]).
//!
//! In the bridge, `bridge/worker.rs` takes an address from the `pool`, writes it into the `ledger`
//! on disk, has the pod wired (`bridge/wiring.rs`) through messages to the kernel (`netlink/`), and
//! leads ports of the host to it (`host_ports.rs`). All of that happens on one thread.

mod bridge;
mod cni;
mod host_ports;
mod ledger;
mod netlink;
mod pool;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use async_trait::async_trait;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use bridge::{Bridge, BridgeConfig};
pub use cni::{CniConfig, CniNetwork, ConfigError, PluginError};
pub use host_ports::FilterError;
pub use ledger::LedgerError;
pub use netlink::NetlinkError;

/// Connects pods. The built-in bridge and foreign CNI plugins are the two that there are.
///
/// # Guarantees
/// `attach` is all or nothing. `detach` is idempotent, works when the namespace is gone already,
/// and after a `kill -9` in the middle of `attach`.
#[async_trait]
pub trait PodNetwork: Send + Sync {
    /// Why no pod can be connected now. Shown to users as the reason why the node is not ready.
    fn ready(&self) -> Result<(), NotReady>;

    /// Tells it which ranges the cluster has given this node. A network that knows its own takes no
    /// notice.
    async fn learn_ranges(&self, _: Vec<IpNet>) -> Result<(), Error> {
        Ok(())
    }

    async fn attach(&self, pod: &Pod) -> Result<Attachment, Error>;

    async fn detach(&self, pod: &Pod) -> Result<(), Error>;
}

/// The pod to connect, as far as a network needs to know it. The same value is handed to `attach`
/// and `detach`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The sandbox's id, 64 hexadecimal digits.
    pub sandbox: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Where the network namespace is pinned. Its loopback interface is up already.
    pub netns: PathBuf,
    pub ports: Vec<PortMapping>,
    pub annotations: BTreeMap<String, String>,
}

/// A port of the host that leads to one of the pod's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortMapping {
    pub protocol: Protocol,
    pub container_port: u16,
    pub host_port: u16,
    /// On which of the host's addresses; none is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

/// What a pod got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The pod's addresses, the primary first.
    pub addresses: Vec<IpAddr>,
}

/// Why pods cannot be connected, in the words of a node's condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    pub reason: String,
    pub message: String,
}

/// Why a pod could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no network for pods is configured")]
    NotConfigured,
    #[error("{0:?} is no name for a bridge")]
    Name(String, #[source] std::io::Error),
    #[error("range {0} is too small for pods")]
    RangeTooSmall(IpNet),
    #[error("no IP addresses available in range {0}")]
    Exhausted(IpNet),
    #[error("host port {port} is taken by sandbox {holder}")]
    PortTaken { port: u16, holder: String },
    #[error("cannot open network namespace {0:?}")]
    Namespace(PathBuf, #[source] std::io::Error),
    #[error("interface {0} was deleted by somebody else")]
    BridgeGone(String),
    #[error("cannot let the node forward packets ({0})")]
    Forwarding(&'static str, #[source] std::io::Error),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error("cannot start the thread of the pod network")]
    Thread(#[source] std::io::Error),
    #[error("the plugins gave the pod no address")]
    NoAddress,
    #[error("sandbox {0} is not connected")]
    NotConnected(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(
        "failed to find plugin {kind:?} in path {folders:?}, which network {network:?} had when the pod was connected: \
         put it there, or mend the configuration of the network in {configurations:?}"
    )]
    PluginGone {
        kind: String,
        folders: Vec<PathBuf>,
        network: String,
        configurations: PathBuf,
    },
    #[error("the pod network has stopped")]
    Stopped,
}
