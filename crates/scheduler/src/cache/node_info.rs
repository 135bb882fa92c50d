//! One node with the pods on it, and their sums.

use std::sync::Arc;

use coracle_api::Text;

use crate::node::Node;
use crate::pod::{HostPort, Pod};
use crate::resources::Resources;

/// The place of a node in the cache's tables. It keeps it as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub(super) u32);

impl Slot {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node, its pods and what they take. Cloned where somebody asks what would be if pods came or
/// went.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    pub slot: Slot,
    pub node: Arc<Node>,
    pub pods: Vec<Arc<Pod>>,
    /// What all its pods take.
    pub requested: Resources,
    /// CPU and memory again, with a minimum for containers that ask for none.
    pub nonzero_milli_cpu: i64,
    pub nonzero_memory: i64,
    pub ports: Ports,
}

impl NodeInfo {
    pub(super) fn new(slot: Slot, node: Arc<Node>) -> NodeInfo {
        NodeInfo {
            slot,
            node,
            pods: Vec::new(),
            requested: Resources::default(),
            nonzero_milli_cpu: 0,
            nonzero_memory: 0,
            ports: Ports::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.node.name
    }

    pub fn add(&mut self, pod: Arc<Pod>) {
        self.requested.add(&pod.requests.used);
        self.nonzero_milli_cpu += pod.requests.nonzero_milli_cpu;
        self.nonzero_memory += pod.requests.nonzero_memory;
        pod.host_ports.iter().for_each(|port| self.ports.take(port));
        self.pods.push(pod);
    }

    /// Takes a pod away; answers the one that was there.
    pub fn remove(&mut self, uid: &str) -> Option<Arc<Pod>> {
        let index = self.pods.iter().position(|pod| pod.uid == uid)?;
        let pod = self.pods.swap_remove(index);
        self.requested.remove(&pod.requests.used);
        self.nonzero_milli_cpu -= pod.requests.nonzero_milli_cpu;
        self.nonzero_memory -= pod.requests.nonzero_memory;
        pod.host_ports
            .iter()
            .for_each(|port| self.ports.give_back(port));
        Some(pod)
    }
}

/// The ports of the host that pods hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports(Vec<HostPort>);

impl Ports {
    fn take(&mut self, port: &HostPort) {
        self.0.push(port.clone());
    }

    fn give_back(&mut self, port: &HostPort) {
        if let Some(index) = self.0.iter().position(|held| held == port) {
            self.0.swap_remove(index);
        }
    }

    pub fn of(ports: &[HostPort]) -> Ports {
        Ports(ports.to_vec())
    }

    /// Whether the port is free. All addresses of the host overlap with each of them.
    pub fn are_free(&self, wanted: &HostPort) -> bool {
        let any = |ip: &Text| ip == "0.0.0.0";
        !self.0.iter().any(|held| {
            held.port == wanted.port
                && held.protocol == wanted.protocol
                && (any(&held.ip) || any(&wanted.ip) || held.ip == wanted.ip)
        })
    }
}
