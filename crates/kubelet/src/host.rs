//! What every part of the kubelet shares: the node's identity and its clients.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_client::{Client, Informers, Journal, Recorder, Stage, World};
use coracle_cri::{Images, Runtime};
use coracle_metrics::Registry;
use coracle_serving::Settings;

use crate::layout::Layout;

/// The component name in events and the journal.
pub const COMPONENT: &str = "kubelet";

/// The node as its kubelet sees it.
pub struct Host {
    pub node_name: String,
    /// The node's addresses; the first is the `hostIP` of pods.
    pub addresses: Vec<IpAddr>,
    pub layout: Layout,
    /// DNS servers of pods; none: the host's.
    pub cluster_dns: Vec<IpAddr>,
    /// `cluster.local`.
    pub cluster_domain: String,
    /// The host's resolver configuration.
    pub resolv_conf: PathBuf,
    pub runtime: Arc<dyn Runtime>,
    pub images: Arc<dyn Images>,
    /// The API, as `system:node:<name>`.
    pub client: Client,
    pub informers: Informers,
    pub events: Recorder,
    pub journal: Journal,
    pub world: World,
    /// What `/metrics` of the kubelet shows.
    pub metrics: Registry,
    /// What `/metrics/probes` shows.
    pub probe_metrics: Registry,
    /// What `/configz` and `/flagz` show.
    pub settings: Settings,
    /// `v1.36.0`.
    pub version: &'static str,
}

impl Host {
    pub fn now(&self) -> Timestamp {
        self.world.now()
    }

    /// Records a stage of a pod's life cycle in the journal.
    pub fn note(&self, uid: &str, what: &'static str, outcome: impl Into<String>) {
        self.journal.note(
            uid,
            Stage {
                when: self.now(),
                who: COMPONENT,
                what,
                outcome: outcome.into(),
            },
        );
    }
}
