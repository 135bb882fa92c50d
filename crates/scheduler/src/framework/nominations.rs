//! Which pods were promised room on which node, by evicting others for them.

use std::collections::HashMap;
use std::sync::Arc;

use coracle_api::Text;

use crate::pod::Pod;

/// Pods by the node they are promised.
#[derive(Debug, Default)]
pub struct Nominations {
    by_node: HashMap<Text, Vec<Arc<Pod>>>,
    node_of: HashMap<Text, Text>,
}

impl Nominations {
    /// The pods that wait for room on a node.
    pub fn on(&self, node: &str) -> &[Arc<Pod>] {
        self.by_node
            .get(node)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The node that a pod is promised.
    pub fn node_of(&self, uid: &str) -> Option<&Text> {
        self.node_of.get(uid)
    }

    pub fn is_empty(&self) -> bool {
        self.node_of.is_empty()
    }

    /// Promises a pod a node, instead of any other it had. An empty name takes the promise back.
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

    /// Keeps the promise for a pod that has changed: the one its object tells of, or the one that
    /// only we know of.
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
