//! Configuration of the proxy.

use std::net::SocketAddr;
use std::time::Duration;

use coracle_serving::Settings;
use ipnet::IpNet;

use crate::compile::NodePortAddresses;
use crate::nft::{Dialect, Pods};
use crate::rules::Family;
use crate::state::PodRanges;

/// Settings of one node's proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The node's name.
    pub node: String,
    /// The name of the nftables tables. Different for each instance on a machine.
    pub table: String,
    /// Addresses for NodePorts.
    pub node_port_addresses: NodePortAddresses,
    /// How traffic of local pods is detected.
    pub detect_local: DetectLocal,
    /// Service CIDRs besides those of ServiceCIDR objects: traffic to unused addresses is dropped.
    pub service_ranges: Vec<IpNet>,
    /// Minimum interval between syncs.
    pub min_sync_period: Duration,
    /// A change that waits longer makes the proxy unhealthy.
    pub health_timeout: Duration,
    /// The mark bit of packets to masquerade.
    pub masquerade_bit: u32,
    /// Masquerade all traffic to cluster IPs.
    pub masquerade_all: bool,
    /// Address of `/healthz` and `/livez`.
    pub healthz: Option<SocketAddr>,
    /// Address of `/metrics` and the other pages about the proxy.
    pub metrics: Option<SocketAddr>,
    /// The version that the pages show.
    pub version: &'static str,
    /// The settings that they show.
    pub settings: Settings,
    /// Whether a failure to listen at one of these is fatal.
    pub bind_hard_fail: bool,
}

/// How traffic of local pods is detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetectLocal {
    /// By source: the cluster CIDRs. Empty: not at all.
    ClusterRanges(Vec<IpNet>),
    /// By source: the pod CIDRs of the Node.
    NodeRanges,
    /// By the input interface.
    Bridge(String),
    /// By the prefix of the input interface's name.
    InterfacePrefix(String),
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
            metrics: Some(SocketAddr::from(([127, 0, 0, 1], 10249))),
            version: "",
            settings: Settings::default(),
            bind_hard_fail: false,
        }
    }
}

/// Upstream's full sync period. There is none here, but the health timeout derives from it.
const SYNC_PERIOD: Duration = Duration::from_secs(30);

impl Config {
    pub(crate) fn pod_ranges(&self) -> PodRanges {
        match &self.detect_local {
            DetectLocal::ClusterRanges(ranges) => PodRanges::Given(ranges.clone()),
            DetectLocal::NodeRanges => PodRanges::OfNode,
            DetectLocal::Bridge(_) | DetectLocal::InterfacePrefix(_) => {
                PodRanges::Given(Vec::new())
            }
        }
    }

    /// The nftables dialect for the kernel's families.
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
