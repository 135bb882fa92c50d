//! What a kubelet has to be told.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use coracle_client::Journal;
use k8s_openapi::api::core::v1::Taint;

use crate::logs::rotation::LogRotation;

/// One node's settings, of final types.
#[derive(Clone)]
pub struct Config {
    pub node_name: String,
    /// The node's addresses, at most one of each family; the first is what pods are told.
    pub addresses: Vec<IpAddr>,
    /// Everything is kept below this folder.
    pub data_dir: PathBuf,
    /// Below which cgroup pods live: `/coracle-<instance>`.
    pub cgroup_root: String,
    pub labels: BTreeMap<String, String>,
    /// Given to the node when it is first registered.
    pub taints: Vec<Taint>,
    pub cluster_dns: Vec<IpAddr>,
    /// `cluster.local`.
    pub cluster_domain: String,
    /// The host's resolver, `/etc/resolv.conf`.
    pub resolv_conf: PathBuf,
    /// A folder of manifests of static pods, or one such file.
    pub manifests: Option<PathBuf>,
    /// How large the logs of containers may get.
    pub logs: LogRotation,
    pub max_pods: u32,
    /// Most processes and threads of one pod; none: a quarter of what all pods may have; negative:
    /// all of it.
    pub pod_pids: Option<i64>,
    /// Kernel parameters that pods may set beside the safe ones: names, or how names begin followed
    /// by `*`.
    pub unsafe_sysctls: Vec<String>,
    /// Where the kubelet's own API is served.
    pub port: u16,
    /// Where `/healthz` answers over plain HTTP, `127.0.0.1:10248`; none: nowhere.
    pub healthz: Option<SocketAddr>,
    /// As the node tells it: `v1.36.0`.
    pub version: String,
    pub journal: Journal,
}
