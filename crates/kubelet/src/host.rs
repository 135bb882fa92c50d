//! What every part of a kubelet has at hand: whom it asks and whom it tells.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_client::{Client, Informers, Journal, Recorder, Stage, World};
use coracle_cri::{Images, Runtime};

use crate::layout::Layout;

/// The name under which the kubelet speaks in events and the journal.
pub const COMPONENT: &str = "kubelet";

/// One node, seen from within its kubelet.
pub struct Host {
    pub node_name: String,
    /// The node's own addresses, the first one being what pods are told as their host's.
    pub addresses: Vec<IpAddr>,
    pub layout: Layout,
    /// Whom pods ask for names; none: the host's own servers.
    pub cluster_dns: Vec<IpAddr>,
    /// `cluster.local`.
    pub cluster_domain: String,
    /// Where the host's resolver is described.
    pub resolv_conf: PathBuf,
    pub runtime: Arc<dyn Runtime>,
    pub images: Arc<dyn Images>,
    /// The API, as `system:node:<name>`.
    pub client: Client,
    pub informers: Informers,
    pub events: Recorder,
    pub journal: Journal,
    pub world: World,
}

impl Host {
    pub fn now(&self) -> Timestamp {
        self.world.now()
    }

    /// Leaves a record of a stage of a pod's life.
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
