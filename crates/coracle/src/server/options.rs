//! The options of `coracle server`, grouped by topic.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_api::Value;
use coracle_apiserver::storage::Media;
use coracle_kubelet::{ImageSettings, ListedImages, Pulls, Verification};
use coracle_network::Encapsulation;
use coracle_runtime::images::{ProxyError, Registries};
use coracle_settings::{Element, OptionalText};
use ipnet::IpNet;

use super::pod_network::Plugins;
use crate::process;
use crate::storage::{EmbeddedSettings, EtcdSettings, Storage};

/// Node lifecycle and simulated nodes.
#[derive(Default)]
pub(super) struct NodeFlags {
    pub(super) simulated_nodes: u16,
    pub(super) node_monitor_grace_period: Duration,
    pub(super) node_eviction_rate: f64,
}

/// Address ranges of the cluster, and its node.
#[derive(Default)]
pub(super) struct NetworkFlags {
    pub(super) cluster_cidr: Vec<IpNet>,
    pub(super) service_cidr: Vec<IpNet>,
    /// The mask sizes of nodes' ranges; 0: the default.
    pub(super) mask_v4: i64,
    pub(super) mask_v6: i64,
    pub(super) encapsulation: Option<EncapsulationMode>,
    pub(super) cluster_domain: String,
    /// Empty: that of the cluster DNS that is deployed.
    pub(super) cluster_dns: Vec<IpAddr>,
    pub(super) resolv_conf: Option<PathBuf>,
    pub(super) node_name: OptionalText,
    pub(super) kubelet_port: Option<u16>,
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

    pub(super) fn encapsulation(&self) -> Encapsulation {
        self.encapsulation
            .map_or_else(Encapsulation::default, |mode| mode.0)
    }
}

/// One that no address has is refused with the ranges.
fn mask(given: i64) -> Option<u8> {
    (given != 0).then(|| u8::try_from(given).unwrap_or(u8::MAX))
}

/// When packets between nodes are encapsulated.
#[derive(Clone, Copy)]
pub(super) struct EncapsulationMode(Encapsulation);

impl Element for EncapsulationMode {
    const KIND: &'static str = "mode";

    fn parse(text: &str) -> Result<EncapsulationMode, String> {
        match text {
            "never" => Ok(EncapsulationMode(Encapsulation::Never)),
            "cross-subnet" => Ok(EncapsulationMode(Encapsulation::CrossSubnet)),
            "always" => Ok(EncapsulationMode(Encapsulation::Always)),
            _ => Err(format!("{text:?} is not never, cross-subnet or always")),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(match self.0 {
            Encapsulation::Never => "never",
            Encapsulation::CrossSubnet => "cross-subnet",
            Encapsulation::Always => "always",
        })
    }
}

/// Limits of pods.
#[derive(Default)]
pub(super) struct PodFlags {
    pub(super) max_pids: Option<i64>,
    pub(super) allowed_unsafe_sysctls: Vec<String>,
}

impl PodFlags {
    /// The PID limit of one pod; 0 means no limit, as upstream.
    pub(super) fn pids(&self) -> Option<i64> {
        self.max_pids.map(|most| if most > 0 { most } else { -1 })
    }
}

/// Pulls of images.
#[derive(Default)]
pub(super) struct ImageFlags {
    pub(super) registries_file: Option<PathBuf>,
    pub(super) registry_hosts_dir: Option<PathBuf>,
    pub(super) serialize_pulls: bool,
    pub(super) max_parallel_pulls: Option<i64>,
    pub(super) verification: Option<VerificationPolicy>,
    pub(super) allowlist: Vec<String>,
}

/// When a pod's credentials are verified for an image that is present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum VerificationPolicy {
    Never,
    NeverOfPreloaded,
    NeverOfListed,
    Always,
}

impl Element for VerificationPolicy {
    const KIND: &'static str = "policy";

    fn parse(text: &str) -> Result<VerificationPolicy, String> {
        match text {
            "NeverVerify" => Ok(VerificationPolicy::Never),
            "NeverVerifyPreloadedImages" => Ok(VerificationPolicy::NeverOfPreloaded),
            "NeverVerifyAllowlistedImages" => Ok(VerificationPolicy::NeverOfListed),
            "AlwaysVerify" => Ok(VerificationPolicy::Always),
            _ => Err(format!(
                "{text:?} is not NeverVerify, NeverVerifyPreloadedImages, \
                 NeverVerifyAllowlistedImages or AlwaysVerify"
            )),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(match self {
            VerificationPolicy::Never => "NeverVerify",
            VerificationPolicy::NeverOfPreloaded => "NeverVerifyPreloadedImages",
            VerificationPolicy::NeverOfListed => "NeverVerifyAllowlistedImages",
            VerificationPolicy::Always => "AlwaysVerify",
        })
    }
}

impl ImageFlags {
    /// How registries are reached.
    ///
    /// # Errors
    /// A proxy of the environment cannot be used.
    pub(super) fn registries(&self) -> Result<Registries, ProxyError> {
        Ok(Registries {
            file: self.registries_file.clone(),
            folder: self.registry_hosts_dir.clone(),
            proxies: process::proxies()?,
            ..Registries::default()
        })
    }

    pub(super) fn settings(&self) -> Result<ImageSettings, Vec<String>> {
        let mut mistakes = Vec::new();
        let pulls = self.pulls().unwrap_or_else(|why| {
            mistakes.push(why.to_owned());
            Pulls::default()
        });
        let verification = self.verification().unwrap_or_else(|why| {
            mistakes.push(why);
            Verification::default()
        });

        match mistakes.is_empty() {
            true => Ok(ImageSettings {
                pulls,
                verification,
            }),
            false => Err(mistakes),
        }
    }

    fn pulls(&self) -> Result<Pulls, &'static str> {
        match (self.serialize_pulls, self.max_parallel_pulls) {
            (_, Some(..=0)) => Err("--max-parallel-image-pulls must be a positive number"),
            (true, Some(2..)) => Err(
                "--max-parallel-image-pulls cannot be larger than 1 unless --serialize-image-pulls is false",
            ),
            (true, _) => Ok(Pulls::Serial),
            (false, most) => Ok(Pulls::Parallel(
                most.and_then(|most| usize::try_from(most).ok()),
            )),
        }
    }

    fn verification(&self) -> Result<Verification, String> {
        let listed = self.allowlist.iter().map(|text| ListedImages::parse(text));
        let listed: Vec<ListedImages> = listed
            .collect::<Result<_, _>>()
            .map_err(|why| format!("--preloaded-images-verification-allowlist: {why}"))?;

        match self.verification {
            Some(VerificationPolicy::NeverOfListed) => Ok(Verification::NeverOfListed(listed)),
            _ if !listed.is_empty() => Err("--preloaded-images-verification-allowlist requires \
                 --image-pull-credentials-verification-policy=NeverVerifyAllowlistedImages"
                .to_owned()),
            Some(VerificationPolicy::Never) => Ok(Verification::Never),
            Some(VerificationPolicy::Always) => Ok(Verification::Always),
            Some(VerificationPolicy::NeverOfPreloaded) | None => Ok(Verification::NeverOfPreloaded),
        }
    }
}

/// CNI plugins.
#[derive(Default)]
pub(super) struct CniFlags {
    pub(super) conf_dir: Option<PathBuf>,
    pub(super) bin_dirs: Vec<PathBuf>,
}

impl CniFlags {
    pub(super) fn plugins(&self) -> Option<Plugins> {
        let configurations = self.conf_dir.clone()?;
        Some(Plugins {
            configurations,
            programs: self.bin_dirs.clone(),
        })
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

/// Parses a DNS-1123 subdomain.
pub(super) fn subdomain(text: &str) -> Result<String, String> {
    let wrong = coracle_api::names::dns1123_subdomain(text);
    if wrong.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?}: {}", wrong.join(", ")))
    }
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
