//! What `coracle server` can be told, beside the few flags that come first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use coracle_apiserver::storage::Media;
use ipnet::IpNet;

use super::pod_network::Plugins;
use crate::storage::{EmbeddedSettings, EtcdSettings, Storage};

/// How nodes are watched over, and nodes that are not there.
#[derive(Args)]
pub(super) struct NodeFlags {
    /// Have so many nodes that exist in the API alone: pods that are scheduled on them seem to run.
    /// What becomes of a pod says its annotation coracle.local/simulate, or that label of its node:
    /// run, succeed, fail or hang (docs/simulated-nodes.md)
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub(super) simulated_nodes: u16,
    /// How long a node may be silent before it counts as dead
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = duration)]
    pub(super) node_monitor_grace_period: Duration,
    /// How many dead nodes of a zone lose their pods in a second
    #[arg(long, value_name = "NUMBER", default_value_t = 0.1)]
    pub(super) node_eviction_rate: f64,
}

/// The addresses of a cluster, and its node.
#[derive(Args)]
pub(super) struct NetworkFlags {
    /// Addresses of pods [default: 10.244.0.0/16, or the next that is free here; for more than 256
    /// simulated nodes alone 10.128.0.0/9]
    #[arg(long, value_name = "RANGE")]
    pub(super) cluster_cidr: Option<IpNet>,
    /// Addresses of Services [default: 10.96.0.0/12, or the next that is free here]
    #[arg(long, value_name = "RANGE")]
    pub(super) service_cidr: Option<IpNet>,
    /// What names of the cluster end with
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", value_parser = subdomain)]
    pub(super) cluster_domain: String,
    /// What the node is called [default: the host's name]
    #[arg(long, value_name = "NAME", conflicts_with = "no_node", value_parser = subdomain)]
    pub(super) node_name: Option<String>,
    /// Port of the kubelet; 0: a free one [default: what it had before, 10250, or a free one]
    #[arg(long, value_name = "PORT", conflicts_with = "no_node")]
    pub(super) kubelet_port: Option<u16>,
}

/// What pods may take of their node.
#[derive(Args)]
pub(super) struct PodFlags {
    /// Most processes and threads of one pod; -1: as many as all pods together may have [default: a
    /// quarter of that]
    #[arg(
        long,
        value_name = "COUNT",
        allow_negative_numbers = true,
        conflicts_with = "no_node"
    )]
    pod_max_pids: Option<i64>,
    /// Kernel parameters that pods may set beside the safe ones, separated by commas: names, or how
    /// names begin and `*`
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "no_node"
    )]
    pub(super) allowed_unsafe_sysctls: Vec<String>,
}

impl PodFlags {
    /// Most processes and threads of one pod; 0 is no limit either, as upstream reads it.
    pub(super) fn pids(&self) -> Option<i64> {
        self.pod_max_pids
            .map(|most| if most > 0 { most } else { -1 })
    }
}

/// Who connects pods.
#[derive(Args)]
pub(super) struct CniFlags {
    /// Have pods connected by CNI plugins, as the first configuration of this folder says, instead
    /// of the built-in bridge
    #[arg(long, value_name = "DIR", conflicts_with = "no_node")]
    cni_conf_dir: Option<PathBuf>,
    /// Where these plugins are, separated by commas
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

/// What a cluster has beside its API server.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Component {
    /// Nothing answers the names of the cluster
    Dns,
    /// Nothing leads the addresses of Services to pods
    Proxy,
    Scheduler,
}

/// Where objects are kept, unless in the folder.
#[derive(Args)]
pub(super) struct EtcdFlags {
    /// Keep objects in this etcd instead of the folder: the client URLs of its members, separated
    /// by commas
    #[arg(
        long,
        value_name = "URLS",
        value_delimiter = ',',
        conflicts_with = "etcd_listen"
    )]
    pub(super) etcd_servers: Vec<String>,
    /// Who signed the certificates of the etcd
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    pub(super) etcd_cafile: Option<PathBuf>,
    /// The certificate that the etcd knows this server by
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(super) etcd_certfile: Option<PathBuf>,
    /// The key of --etcd-certfile
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub(super) etcd_keyfile: Option<PathBuf>,
    /// What keys in the etcd begin with
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    pub(super) etcd_prefix: String,
    /// How often the past of the etcd is forgotten; 0: never by this server
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) etcd_compaction_interval: u64,
    /// Let renewals of node leases wait up to so many milliseconds, so that many of them share one
    /// flush of the disk, which spares flash. They are answered once they are durable, only later:
    /// a power cut loses no write that was acknowledged. At most 5000; 0: off. Embedded store only
    #[arg(long, value_name = "MILLISECONDS", default_value = "0", value_parser = milliseconds, conflicts_with = "etcd_servers")]
    pub(super) node_lease_write_delay: Duration,
    /// How long an event is kept after it was last written; 0: for ever
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(super) event_ttl: Duration,
}

/// A name as objects have it, and domains.
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
