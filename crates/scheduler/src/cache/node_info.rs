//! One node with the pods on it, and their sums.

use std::sync::Arc;

use coracle_api::Text;

use crate::node::Node;
use crate::pod::{HostPort, Pod};
use crate::resources::Resources;

/// The index of a node in the cache's tables. It stays the same as long as the node exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub(super) u32);

impl Slot {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node, its pods and the sums of their requests. Cloned to evaluate what-if questions.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    pub slot: Slot,
    pub node: Arc<Node>,
    pub pods: Vec<Arc<Pod>>,
    /// The sum of the requests of its pods.
    pub requested: Resources,
    /// CPU and memory again, with a minimum for containers without requests.
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

    /// Removes a pod and returns it.
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

/// The host ports in use.
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

    /// Whether the port is free. The wildcard address conflicts with every address.
    pub fn are_free(&self, wanted: &HostPort) -> bool {
        let any = |ip: &Text| ip == "0.0.0.0";
        !self.0.iter().any(|held| {
            held.port == wanted.port
                && held.protocol == wanted.protocol
                && (any(&held.ip) || any(&wanted.ip) || held.ip == wanted.ip)
        })
    }
}
