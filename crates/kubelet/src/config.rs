//! Configuration of the kubelet.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_client::Journal;
use coracle_serving::{Flag, Settings};
use k8s_openapi::api::core::v1::Taint;

use crate::images::ImageSettings;
use crate::logs::rotation::LogRotation;

/// What a kubelet shows of its settings.
#[derive(Clone)]
pub enum Shown {
    /// The flags of a process with other parts; the configuration is made from the settings.
    Flags(Vec<Flag>),
    /// The flags and the configuration file of a kubelet alone.
    All(Settings),
}

/// Settings of one node, in their final types.
#[derive(Clone)]
pub struct Config {
    pub node_name: String,
    /// The node's addresses, at most one per family; the first is the primary one.
    pub addresses: Vec<IpAddr>,
    /// Addresses outside of the node's network.
    pub external_addresses: Vec<IpAddr>,
    /// The machine's ID at its provider.
    pub provider_id: Option<String>,
    /// Whether the kubelet creates its Node object; if not, somebody else does.
    pub registers: bool,
    /// Directory of all kubelet data.
    pub data_dir: PathBuf,
    /// The cgroup below which pods run: `/coracle-<instance>`.
    pub cgroup_root: String,
    pub labels: BTreeMap<String, String>,
    /// Set when the node is first registered.
    pub taints: Vec<Taint>,
    pub cluster_dns: Vec<IpAddr>,
    /// `cluster.local`.
    pub cluster_domain: String,
    /// The host's resolver, `/etc/resolv.conf`.
    pub resolv_conf: PathBuf,
    /// A directory of static pod manifests, or one such file.
    pub manifests: Option<PathBuf>,
    /// Size limits of container logs.
    pub logs: LogRotation,
    pub max_pods: u32,
    /// Limit of processes and threads per pod; none: a quarter of the limit of all pods; negative:
    /// all of it.
    pub pod_pids: Option<i64>,
    /// Kernel parameters that pods may set besides the safe ones: names, or prefixes followed by
    /// `*`.
    pub unsafe_sysctls: Vec<String>,
    pub images: ImageSettings,
    /// Host ports (TCP) that pods cannot have, because other parts of the cluster serve them; those
    /// of the kubelet itself are known.
    pub reserved_ports: Vec<u16>,
    /// Port of the kubelet API.
    pub port: u16,
    /// Address of the plain HTTP `/healthz` server, `127.0.0.1:10248`; none: not served.
    pub healthz: Option<SocketAddr>,
    /// As reported in the node status: `v1.36.0`.
    pub version: &'static str,
    /// What `/configz` and `/flagz` show.
    pub shown: Shown,
    pub journal: Journal,
}

impl Config {
    /// What `/configz` and `/flagz` show: the settings as a KubeletConfiguration.
    pub(crate) fn settings(&self) -> Settings {
        let flags = match &self.shown {
            Shown::All(settings) => return settings.clone(),
            Shown::Flags(flags) => flags.clone(),
        };

        let mut config = Map::new();
        config.insert("apiVersion", "kubelet.config.k8s.io/v1beta1");
        config.insert("kind", "KubeletConfiguration");
        config.insert("port", i64::from(self.port));
        if let Some(healthz) = self.healthz {
            config.insert("healthzBindAddress", healthz.ip().to_string());
            config.insert("healthzPort", i64::from(healthz.port()));
        }
        if let Some(manifests) = &self.manifests {
            config.insert("staticPodPath", manifests.display().to_string());
        }

        let strings = |texts: &[String]| texts.iter().map(Value::string).collect::<Vec<_>>();
        let addresses: Vec<String> = self.cluster_dns.iter().map(IpAddr::to_string).collect();
        config.insert("clusterDNS", strings(&addresses));
        config.insert("clusterDomain", self.cluster_domain.as_str());
        config.insert("resolvConf", self.resolv_conf.display().to_string());

        config.insert("cgroupDriver", "cgroupfs");
        config.insert("cgroupRoot", self.cgroup_root.as_str());
        config.insert("maxPods", i64::from(self.max_pods));
        if let Some(limit) = self.pod_pids {
            config.insert("podPidsLimit", limit);
        }
        config.insert("allowedUnsafeSysctls", strings(&self.unsafe_sysctls));
        config.insert("containerLogMaxSize", self.logs.max_size.to_string());
        config.insert(
            "containerLogMaxFiles",
            i64::try_from(self.logs.max_files).unwrap_or(i64::MAX),
        );

        let config = json::to_vec(&Value::Object(config));
        let config = String::from_utf8(config).expect("JSON is UTF-8");
        Settings {
            config: Some(("kubeletconfig", config)),
            flags: Some(flags),
        }
    }

    /// The reserved host ports and those of the kubelet itself.
    pub(crate) fn all_reserved_ports(&self) -> Vec<u16> {
        let own = [self.port].into_iter();
        let healthz = self.healthz.map(|address| address.port());
        own.chain(healthz)
            .chain(self.reserved_ports.iter().copied())
            .collect()
    }
}
