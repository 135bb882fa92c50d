//! The flags of `coracle server`, grouped by topic.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use coracle_apiserver::storage::Media;
use ipnet::IpNet;

use super::pod_network::Plugins;
use crate::storage::{EmbeddedSettings, EtcdSettings, Storage};

/// Node lifecycle and simulated nodes.
#[derive(Args)]
pub(super) struct NodeFlags {
    /// Number of simulated nodes: they exist in the API only, and pods scheduled on them appear to
    /// run. The annotation coracle.local/simulate of a pod, or that label of its node, selects the
    /// outcome: run, succeed, fail or hang (docs/simulated-nodes.md)
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub(super) simulated_nodes: u16,
    /// Time without a lease renewal after which a node is marked NotReady
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = duration)]
    pub(super) node_monitor_grace_period: Duration,
    /// Unreachable nodes per second and zone whose pods are evicted
    #[arg(long, value_name = "NUMBER", default_value_t = 0.1)]
    pub(super) node_eviction_rate: f64,
}

/// Address ranges of the cluster, and its node.
#[derive(Args)]
pub(super) struct NetworkFlags {
    /// Address range of pods [default: 10.244.0.0/16, or the next free range; with --no-node and
    /// more than 256 simulated nodes 10.128.0.0/9]
    #[arg(long, value_name = "RANGE")]
    pub(super) cluster_cidr: Option<IpNet>,
    /// Address range of Services [default: 10.96.0.0/12, or the next free range]
    #[arg(long, value_name = "RANGE")]
    pub(super) service_cidr: Option<IpNet>,
    /// DNS domain of the cluster
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", value_parser = subdomain)]
    pub(super) cluster_domain: String,
    /// Name of the node [default: the hostname]
    #[arg(long, value_name = "NAME", conflicts_with = "no_node", value_parser = subdomain)]
    pub(super) node_name: Option<String>,
    /// Port of the kubelet; 0 selects a free port [default: the port of the last start, 10250, or a
    /// free port]
    #[arg(long, value_name = "PORT", conflicts_with = "no_node")]
    pub(super) kubelet_port: Option<u16>,
}

/// Limits of pods.
#[derive(Args)]
pub(super) struct PodFlags {
    /// Maximum number of processes and threads of one pod; -1: the limit of all pods together
    /// [default: a quarter of that limit]
    #[arg(
        long,
        value_name = "COUNT",
        allow_negative_numbers = true,
        conflicts_with = "no_node"
    )]
    pod_max_pids: Option<i64>,
    /// Unsafe sysctls that pods may set, separated by commas: names, or prefixes followed by `*`
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "no_node"
    )]
    pub(super) allowed_unsafe_sysctls: Vec<String>,
}

impl PodFlags {
    /// The PID limit of one pod; 0 means no limit, as upstream.
    pub(super) fn pids(&self) -> Option<i64> {
        self.pod_max_pids
            .map(|most| if most > 0 { most } else { -1 })
    }
}

/// CNI plugins.
#[derive(Args)]
pub(super) struct CniFlags {
    /// Use CNI plugins for the pod network, with the first configuration in this directory, instead
    /// of the built-in bridge
    #[arg(long, value_name = "DIR", conflicts_with = "no_node")]
    cni_conf_dir: Option<PathBuf>,
    /// Directories of CNI plugin binaries, separated by commas
    #[arg(
        long,
        value_name = "DIRS",
        value_delimiter = ',',
        default_value = "/opt/cni/bin",
        requires = "cni_conf_dir"
    )]
    cni_bin_dir: Vec<PathBuf>,
}

impl CniFlags {
    pub(super) fn plugins(&self) -> Option<Plugins> {
        let configurations = self.cni_conf_dir.clone()?;
        Some(Plugins {
            configurations,
            programs: self.cni_bin_dir.clone(),
        })
    }
}

/// Components that --disable accepts.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Component {
    /// Cluster DNS
    Dns,
    /// Service proxy
    Proxy,
    Scheduler,
}

/// Storage: an etcd instead of the embedded store, and its settings.
#[derive(Args)]
pub(super) struct EtcdFlags {
    /// Store objects in this etcd instead of the embedded store: client URLs of its members,
    /// separated by commas
    #[arg(
        long,
        value_name = "URLS",
        value_delimiter = ',',
        conflicts_with = "etcd_listen"
    )]
    pub(super) etcd_servers: Vec<String>,
    /// CA certificate of the etcd servers
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    pub(super) etcd_cafile: Option<PathBuf>,
    /// Client certificate for the etcd servers
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(super) etcd_certfile: Option<PathBuf>,
    /// Key of --etcd-certfile
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub(super) etcd_keyfile: Option<PathBuf>,
    /// Prefix of all keys in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    pub(super) etcd_prefix: String,
    /// Interval of etcd compaction by this server; 0: off
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) etcd_compaction_interval: u64,
    /// Delay renewals of node leases up to this many milliseconds, so that many of them share one
    /// disk flush; reduces flash wear. A renewal is still acknowledged only when it is durable. At
    /// most 5000; 0: off. Embedded store only
    #[arg(long, value_name = "MILLISECONDS", default_value = "0", value_parser = milliseconds, conflicts_with = "etcd_servers")]
    pub(super) node_lease_write_delay: Duration,
    /// Time after the last write when an Event is deleted; 0: never
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(super) event_ttl: Duration,
}

/// Parses a DNS-1123 subdomain.
pub(super) fn subdomain(text: &str) -> Result<String, String> {
    let wrong = coracle_api::names::dns1123_subdomain(text);
    if wrong.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?}: {}", wrong.join(", ")))
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = coracle_api::time::parse_duration(text).map_err(|error| error.to_string())?;
    parsed
        .to_std()
        .ok_or_else(|| "must not be negative".to_string())
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl EtcdFlags {
    pub(super) fn storage(&self, data_dir: &Path) -> Storage {
        if self.etcd_servers.is_empty() {
            let node_lease_delay =
                Some(self.node_lease_write_delay).filter(|delay| !delay.is_zero());
            return Storage::Embedded(EmbeddedSettings {
                data_dir: data_dir.to_path_buf(),
                node_lease_delay,
            });
        }

        Storage::Etcd(EtcdSettings {
            servers: self.etcd_servers.clone(),
            authority: self.etcd_cafile.clone(),
            identity: self.etcd_certfile.clone().zip(self.etcd_keyfile.clone()),
            prefix: self.etcd_prefix.clone(),
            media: Media::Protobuf,
            compaction: Some(Duration::from_secs(self.etcd_compaction_interval))
                .filter(|every| !every.is_zero()),
        })
    }
}
