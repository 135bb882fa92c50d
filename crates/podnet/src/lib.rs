//! Pod networking.
//!
//! The runtime creates a network namespace, and a [`PodNetwork`] connects it: interface, addresses,
//! routes, host ports. There are two: the built-in [`Bridge`], and CNI plugins ([`CniNetwork`]).
//!
//! The bridge (`bridge/worker.rs`) takes an address from the `pool`, records it in the `ledger` on
//! disk, connects the pod (`bridge/wiring.rs`) through netlink, and maps host ports
//! (`host_ports.rs`), all on one thread.

mod bridge;
mod cni;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
#[cfg(test)]
#[path = "../../../fuzz/run_corpus.rs"]
mod fuzz_corpus;
mod host_ports;
mod ledger;
mod pool;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use async_trait::async_trait;
use coracle_netlink::nftables::NftablesError;
use coracle_netlink::{ForwardingError, NetlinkError};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use bridge::{Bridge, BridgeConfig};
pub use cni::{CniConfig, CniNetwork, ConfigError, PluginError};
pub use ledger::LedgerError;

/// Connects pods: the built-in bridge or CNI plugins.
///
/// # Guarantees
/// `attach` is atomic. `detach` is idempotent, works without the namespace, and after a `kill -9`
/// during `attach`.
#[async_trait]
pub trait PodNetwork: Send + Sync {
    /// Why pods cannot be connected; reported in the node's Ready condition.
    fn ready(&self) -> Result<(), NotReady>;

    /// Sets the pod CIDRs of this node. CNI plugins have their own and ignore it.
    async fn learn_ranges(&self, _: Vec<IpNet>) -> Result<(), Error> {
        Ok(())
    }

    async fn attach(&self, pod: &Pod) -> Result<Attachment, Error>;

    async fn detach(&self, pod: &Pod) -> Result<(), Error>;
}

/// The pod to connect. `attach` and `detach` get the same value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The sandbox ID, 64 hexadecimal digits.
    pub sandbox: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Path of the network namespace. Its loopback interface is up.
    pub netns: PathBuf,
    pub ports: Vec<PortMapping>,
    pub annotations: BTreeMap<String, String>,
}

/// A host port mapped to a pod's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortMapping {
    pub protocol: Protocol,
    pub container_port: u16,
    pub host_port: u16,
    /// The host address; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

/// The result of attaching a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The pod's addresses, the primary first.
    pub addresses: Vec<IpAddr>,
}

/// Why the network is not ready, as in the node's condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    pub reason: String,
    pub message: String,
}

/// Why a pod could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("pod network is not configured")]
    NotConfigured,
    #[error("invalid bridge name {0:?}")]
    Name(String, #[source] std::io::Error),
    #[error("range {0} is too small for pods")]
    RangeTooSmall(IpNet),
    #[error("no IP addresses available in range {0}")]
    Exhausted(IpNet),
    #[error("host port {port} is already used by sandbox {holder}")]
    PortTaken { port: u16, holder: String },
    #[error("cannot open network namespace {0:?}")]
    Namespace(PathBuf, #[source] std::io::Error),
    #[error("interface {0} was deleted by another process")]
    BridgeGone(String),
    #[error(transparent)]
    Forwarding(#[from] ForwardingError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Nftables(#[from] NftablesError),
    #[error("cannot start the pod network thread")]
    Thread(#[source] std::io::Error),
    #[error("the CNI plugins returned no IP address")]
    NoAddress,
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(
        "failed to find plugin {kind:?} in path {folders:?}, needed to disconnect the pod from network {network:?}: \
         install it, or fix the network's configuration in {configurations:?}"
    )]
    PluginGone {
        kind: String,
        folders: Vec<PathBuf>,
        network: String,
        configurations: PathBuf,
    },
    #[error("the pod network thread has stopped")]
    Stopped,
}
