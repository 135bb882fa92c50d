//! Nominated nodes: the nodes on which pods are being evicted for another pod.

use std::collections::HashMap;
use std::sync::Arc;

use coracle_api::Text;

use crate::pod::Pod;

/// Pods by their nominated node.
#[derive(Debug, Default)]
pub struct Nominations {
    by_node: HashMap<Text, Vec<Arc<Pod>>>,
    node_of: HashMap<Text, Text>,
}

impl Nominations {
    /// The pods nominated to a node.
    pub fn on(&self, node: &str) -> &[Arc<Pod>] {
        self.by_node
            .get(node)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The nominated node of a pod.
    pub fn node_of(&self, uid: &str) -> Option<&Text> {
        self.node_of.get(uid)
    }

    pub fn is_empty(&self) -> bool {
        self.node_of.is_empty()
    }

    /// Nominates a pod to a node, instead of any other. An empty name clears the nomination.
    pub fn set(&mut self, pod: &Arc<Pod>, node: &str) {
        self.remove(&pod.uid);
        if !node.is_empty() {
            self.node_of.insert(pod.uid.clone(), Text::new(node));
            self.by_node
                .entry(Text::new(node))
                .or_default()
                .push(Arc::clone(pod));
        }
    }

    /// Keeps the nomination of a changed pod: that of its status, or else the one known only here.
    pub fn refresh(&mut self, pod: &Arc<Pod>) {
        if !pod.nominated_node.is_empty() {
            self.set(pod, &pod.nominated_node.clone());
        } else if let Some(node) = self.node_of.get(&pod.uid).cloned() {
            self.set(pod, &node);
        }
    }

    pub fn remove(&mut self, uid: &str) {
        let Some(node) = self.node_of.remove(uid) else {
            return;
        };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.retain(|pod| pod.uid != uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
}
