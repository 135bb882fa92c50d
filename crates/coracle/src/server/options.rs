//! The options of `coracle server`, grouped by topic.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_api::Value;
use coracle_apiserver::storage::Media;
use coracle_settings::{Element, OptionalText};
use ipnet::IpNet;

use crate::settings::subdomain;
use crate::storage::{EmbeddedSettings, EtcdSettings, Storage};

/// Node lifecycle and simulated nodes.
#[derive(Default)]
pub(super) struct NodeFlags {
    pub(super) simulated_nodes: u16,
    pub(super) node_monitor_grace_period: Duration,
    pub(super) node_eviction_rate: f64,
    pub(super) signing_duration: Duration,
}

/// Address ranges of the cluster.
#[derive(Default)]
pub(super) struct NetworkFlags {
    pub(super) cluster_cidr: Vec<IpNet>,
    pub(super) service_cidr: Vec<IpNet>,
    /// The mask sizes of nodes' ranges; 0: the default.
    pub(super) mask_v4: i64,
    pub(super) mask_v6: i64,
    pub(super) cluster_domain: String,
    /// Empty: that of the cluster DNS that is deployed.
    pub(super) cluster_dns: Vec<IpAddr>,
    /// The CA of other kubelets; empty: they are not verified.
    pub(super) kubelet_certificate_authority: OptionalText,
}

impl NetworkFlags {
    pub(super) fn node_mask_v4(&self) -> Option<u8> {
        mask(self.mask_v4)
    }

    pub(super) fn node_mask_v6(&self) -> Option<u8> {
        mask(self.mask_v6)
    }
}

/// One that no address has is refused with the ranges.
fn mask(given: i64) -> Option<u8> {
    (given != 0).then(|| u8::try_from(given).unwrap_or(u8::MAX))
}

/// How administrators reach the API server.
#[derive(Default)]
pub(super) struct AccessFlags {
    /// Further names and addresses in its certificate.
    pub(super) names: Vec<String>,
    /// A further file for the administrator's kubeconfig, and its permissions.
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) kubeconfig_mode: String,
}

impl AccessFlags {
    pub(super) fn check(&self, mistakes: &mut Vec<String>) {
        if self.mode().is_none() {
            mistakes.push(format!(
                "--write-kubeconfig-mode: {:?} is not an octal mode up to 777",
                self.kubeconfig_mode
            ));
        }
        for name in &self.names {
            let host = name.strip_prefix("*.").unwrap_or(name);
            if name.parse::<IpAddr>().is_err() && subdomain(host).is_err() {
                mistakes.push(format!(
                    "--tls-san: {name:?} is neither an address nor a DNS name"
                ));
            }
        }
    }

    pub(super) fn mode(&self) -> Option<u32> {
        let mode = u32::from_str_radix(&self.kubeconfig_mode, 8).ok();
        mode.filter(|mode| *mode <= 0o777)
    }
}

/// Components that --disable accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Component {
    /// Cluster DNS
    Dns,
    /// Network between nodes
    Network,
    /// Service proxy
    Proxy,
    Scheduler,
}

impl Element for Component {
    const KIND: &'static str = "component";
    const LIST: &'static str = "components";

    fn parse(text: &str) -> Result<Component, String> {
        match text {
            "dns" => Ok(Component::Dns),
            "network" => Ok(Component::Network),
            "proxy" => Ok(Component::Proxy),
            "scheduler" => Ok(Component::Scheduler),
            _ => Err(format!("{text:?} is not dns, network, proxy or scheduler")),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(match self {
            Component::Dns => "dns",
            Component::Network => "network",
            Component::Proxy => "proxy",
            Component::Scheduler => "scheduler",
        })
    }
}

/// Storage: an etcd instead of the embedded store, and its settings.
#[derive(Default)]
pub(super) struct EtcdFlags {
    pub(super) servers: Vec<String>,
    pub(super) cafile: Option<PathBuf>,
    pub(super) certfile: Option<PathBuf>,
    pub(super) keyfile: Option<PathBuf>,
    pub(super) prefix: String,
    pub(super) compaction_seconds: u64,
    pub(super) lease_delay_milliseconds: u64,
    pub(super) event_ttl: Duration,
}

impl EtcdFlags {
    pub(super) fn storage(&self, data_dir: &Path) -> Storage {
        if self.servers.is_empty() {
            let node_lease_delay = Some(Duration::from_millis(self.lease_delay_milliseconds))
                .filter(|delay| !delay.is_zero());
            return Storage::Embedded(EmbeddedSettings {
                data_dir: data_dir.to_path_buf(),
                node_lease_delay,
            });
        }

        Storage::Etcd(EtcdSettings {
            servers: self.servers.clone(),
            authority: self.cafile.clone(),
            identity: self.certfile.clone().zip(self.keyfile.clone()),
            prefix: self.prefix.clone(),
            media: Media::Protobuf,
            compaction: Some(Duration::from_secs(self.compaction_seconds))
                .filter(|every| !every.is_zero()),
        })
    }
}
