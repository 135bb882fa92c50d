//! What a proxy is told before it begins.

mod file;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::compile::NodePortAddresses;
use crate::nft::{Dialect, Pods};
use crate::rules::Family;
use crate::state::PodRanges;

/// How one node's proxy works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The node's name.
    pub node: String,
    /// The name of the tables in the kernel. Instances on one machine have different ones.
    pub table: String,
    /// Where ports of the node answer.
    pub node_port_addresses: NodePortAddresses,
    /// How packets of the node's own pods are recognized.
    pub detect_local: DetectLocal,
    /// Ranges of cluster addresses, beside those that ServiceCIDR objects name: what no Service has
    /// is dropped here.
    pub service_ranges: Vec<IpNet>,
    /// The kernel is told of changes at most so often.
    pub min_sync_period: Duration,
    /// Changes that wait for so long make the proxy unhealthy.
    pub health_timeout: Duration,
    /// The bit of a packet's mark that says "hide its source".
    pub masquerade_bit: u32,
    /// Hide the source of everything that goes to a cluster address.
    pub masquerade_all: bool,
    /// Where `/healthz` and `/livez` answer.
    pub healthz: Option<SocketAddr>,
    /// Whether it is fatal that nobody can listen there.
    pub bind_hard_fail: bool,
}

/// How packets of the node's own pods are recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetectLocal {
    /// By their source: the cluster's ranges. None: not at all.
    ClusterRanges(Vec<IpNet>),
    /// By their source: the ranges that the Node object names.
    NodeRanges,
    /// By the interface that they come from.
    Bridge(String),
    /// By how its name begins.
    InterfacePrefix(String),
}

/// What is wrong with a configuration, everything at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ConfigError(pub Vec<String>);

/// A configuration file: what it says for the proxy, and how the API server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub config: Config,
    /// Empty: not said.
    pub kubeconfig: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            node: String::new(),
            table: "kube-proxy".to_owned(),
            node_port_addresses: NodePortAddresses::Primary,
            detect_local: DetectLocal::ClusterRanges(Vec::new()),
            service_ranges: Vec::new(),
            min_sync_period: Duration::from_secs(1),
            health_timeout: 2 * SYNC_PERIOD,
            masquerade_bit: 14,
            masquerade_all: false,
            healthz: Some(SocketAddr::from(([0, 0, 0, 0], 10256))),
            bind_hard_fail: false,
        }
    }
}

/// Upstream looks at everything anew so often. Nothing here does, but health is measured by it.
const SYNC_PERIOD: Duration = Duration::from_secs(30);

impl Config {
    /// Reads a KubeProxyConfiguration, YAML or JSON. What it does not say has its default.
    ///
    /// # Errors
    /// With all that is wrong with it.
    pub fn from_file(text: &[u8]) -> Result<File, ConfigError> {
        file::read(text)
    }

    pub(crate) fn pod_ranges(&self) -> PodRanges {
        match &self.detect_local {
            DetectLocal::ClusterRanges(ranges) => PodRanges::Given(ranges.clone()),
            DetectLocal::NodeRanges => PodRanges::OfNode,
            DetectLocal::Bridge(_) | DetectLocal::InterfacePrefix(_) => {
                PodRanges::Given(Vec::new())
            }
        }
    }

    /// How its tables are written, in the families that the kernel has.
    pub(crate) fn dialect(&self, families: Vec<Family>) -> Dialect {
        let pods = match &self.detect_local {
            DetectLocal::ClusterRanges(ranges) if ranges.is_empty() => Pods::Unknown,
            DetectLocal::ClusterRanges(ranges) => Pods::Ranges(
                ranges
                    .iter()
                    .map(|range| Family::of(range.addr()))
                    .collect(),
            ),
            DetectLocal::NodeRanges => Pods::Ranges(Family::BOTH.to_vec()),
            DetectLocal::Bridge(name) => Pods::Interface(name.clone()),
            DetectLocal::InterfacePrefix(prefix) => Pods::InterfacePrefix(prefix.clone()),
        };

        Dialect {
            table: self.table.clone(),
            families,
            masquerade_bit: self.masquerade_bit,
            masquerade_all: self.masquerade_all,
            pods,
        }
    }
}
