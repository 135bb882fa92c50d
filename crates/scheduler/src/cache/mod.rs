//! The state of the cluster: nodes, the pods on them, and assumed pods.
//!
//! A pod enters when the API reports its node, or earlier, when the scheduler has chosen one
//! ([`Cache::assume`]): the next pod must not get the same resources. An assumed pod stays until
//! the API confirms it, its binding fails, or it is deleted; it never expires. The event loop owns
//! the cache and applies changes only between cycles. So the cache itself is the snapshot of a
//! cycle, and nothing is copied: a change touches one node, its columns ([`topology`]) and the
//! counters of the pods' classes ([`counters`]).

mod counters;
mod node_info;
#[cfg(test)]
mod tests;
mod topology;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coracle_api::Text;

pub use counters::{Counts, ExistingTerm, ExistingTermKind, PodClass, spread_counts};
pub use node_info::{NodeInfo, Ports, Slot};
pub use topology::{Column, Domain};

use counters::Counters;

use crate::node::Node;
use crate::pod::Pod;
use crate::related::RelatedObjects;

/// Nodes and pods.
#[derive(Debug, Default)]
pub struct Cache {
    nodes: Vec<Option<NodeEntry>>,
    free: Vec<Slot>,
    by_name: HashMap<Text, Slot>,
    /// Pods by their UID.
    pods: HashMap<Text, PodEntry>,
    /// How many of them are assumed.
    assumed: usize,
    /// Existing nodes, with zones interleaved.
    order: Vec<Slot>,
    order_is_stale: bool,
    /// The number of nodes that have an image.
    images: HashMap<Text, usize>,
    /// Computed on first use by a cycle, hence the cells.
    columns: RefCell<HashMap<Text, Arc<Column>>>,
    counters: RefCell<Counters>,
    related: RelatedObjects,
}

#[derive(Debug)]
struct NodeEntry {
    info: NodeInfo,
    /// `false`: there is no Node object, but pods name it.
    exists: bool,
}

#[derive(Clone, Debug)]
struct PodEntry {
    slot: Slot,
    assumed: bool,
}

impl Cache {
    pub fn related(&self) -> &RelatedObjects {
        &self.related
    }

    /// Changes the related objects. `change` returns whether labels of namespaces changed, because
    /// they decide which pods an affinity term matches.
    pub fn change_related(&mut self, change: impl FnOnce(&mut RelatedObjects) -> bool) {
        if change(&mut self.related) {
            self.counters.get_mut().namespaces_changed();
        }
    }

    /// Adds or updates a node.
    pub fn set_node(&mut self, node: Arc<Node>) {
        let slot = self.slot_of(&node.name);
        let entry = self.nodes[slot.index()].as_mut().expect("slot_of makes it");
        let old = entry.exists.then(|| Arc::clone(&entry.info.node));
        self.order_is_stale |= old.as_ref().is_none_or(|old| old.zone() != node.zone());

        entry.exists = true;
        self.set_columns(slot, Some(&node));
        self.set_images(old.as_deref(), Some(&node));
        self.nodes[slot.index()]
            .as_mut()
            .expect("slot_of makes it")
            .info
            .node = node;
    }

    /// Removes a node. Pods on it stay until they are deleted.
    pub fn remove_node(&mut self, name: &str) -> Option<Arc<Node>> {
        let slot = *self.by_name.get(name)?;
        let entry = self.nodes[slot.index()]
            .as_mut()
            .filter(|entry| entry.exists)?;
        let node = std::mem::replace(&mut entry.info.node, Arc::new(Node::unknown(name)));
        entry.exists = false;
        self.order_is_stale = true;
        self.set_columns(slot, None);
        self.set_images(Some(&node), None);
        self.drop_if_empty(slot);
        Some(node)
    }

    /// Adds or updates a pod that the API reports on a node; this confirms an assumed one.
    pub fn set_pod(&mut self, pod: Arc<Pod>) -> Option<Arc<Pod>> {
        let old = self.remove_pod(&pod.uid);
        self.insert(pod, false);
        old
    }

    /// Removes a pod and returns it.
    pub fn remove_pod(&mut self, uid: &str) -> Option<Arc<Pod>> {
        let PodEntry { slot, assumed } = self.pods.remove(uid)?;
        self.assumed -= usize::from(assumed);
        let entry = self.nodes[slot.index()]
            .as_mut()
            .expect("pods are on known nodes");
        let pod = entry
            .info
            .remove(uid)
            .expect("a pod is where it is said to be");

        self.counters
            .get_mut()
            .pod_removed(slot, &pod, &self.related);
        self.drop_if_empty(slot);

        Some(pod)
    }

    /// Counts a pod on its node before the API confirms it.
    pub fn assume(&mut self, pod: Arc<Pod>) {
        self.remove_pod(&pod.uid);
        self.insert(pod, true);
    }

    /// Removes an assumed pod. One that was confirmed in the meantime stays.
    pub fn forget(&mut self, uid: &str) -> Option<Arc<Pod>> {
        if self.is_assumed(uid) {
            self.remove_pod(uid)
        } else {
            None
        }
    }

    pub fn is_assumed(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(|pod| pod.assumed)
    }

    pub fn pod(&self, uid: &str) -> Option<&Arc<Pod>> {
        let slot = self.pods.get(uid)?.slot;
        self.node(slot).pods.iter().find(|pod| pod.uid == uid)
    }

    /// The number of pods whose node the API has not confirmed.
    pub fn assumed_count(&self) -> usize {
        self.assumed
    }

    /// The number of nodes, also of those that only pods name.
    pub fn node_count(&self) -> usize {
        self.by_name.len()
    }

    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// Updates the order of existing nodes, with zones interleaved. Call before a cycle.
    pub fn refresh(&mut self) {
        if std::mem::take(&mut self.order_is_stale) {
            self.order = self.interleaved();
        }
    }

    /// The existing nodes as of the last [`Cache::refresh`].
    pub fn order(&self) -> &[Slot] {
        &self.order
    }

    pub fn nodes(&self) -> impl Iterator<Item = &NodeInfo> {
        self.order.iter().map(|slot| self.node(*slot))
    }

    /// # Panics
    /// If the node was removed: slots must not be kept beyond a cycle.
    pub fn node(&self, slot: Slot) -> &NodeInfo {
        &self.nodes[slot.index()]
            .as_ref()
            .expect("slots do not outlive a cycle")
            .info
    }

    /// A node by name, if it exists.
    pub fn named(&self, name: &str) -> Option<&NodeInfo> {
        let slot = self.by_name.get(name)?;
        self.nodes[slot.index()]
            .as_ref()
            .filter(|entry| entry.exists)
            .map(|entry| &entry.info)
    }

    /// The number of nodes that have an image.
    pub fn image_spread(&self, image: &str) -> usize {
        self.images.get(image).copied().unwrap_or_default()
    }

    /// The domains of a node label.
    pub fn column(&self, key: &str) -> Arc<Column> {
        let mut columns = self.columns.borrow_mut();
        if let Some(column) = columns.get(key) {
            return Arc::clone(column);
        }

        let mut column = Column::default();
        for entry in self.nodes.iter().flatten() {
            column.set(
                entry.info.slot,
                key,
                entry.exists.then_some(&*entry.info.node),
            );
        }

        let column = Arc::new(column);
        columns.insert(Text::new(key), Arc::clone(&column));

        column
    }

    /// How many pods of a class each node has.
    pub fn counts(&self, class: &PodClass) -> Arc<Counts> {
        let nodes = self.nodes.iter().flatten().map(|entry| &entry.info);
        self.counters
            .borrow_mut()
            .counts(class, nodes, &self.related)
    }

    /// Visits the affinity terms of existing pods that concern incoming pods, with the number of
    /// such pods on each node. `visit` must not call [`Cache::counts`].
    pub fn for_each_existing_term(&self, mut visit: impl FnMut(&ExistingTerm, &Counts)) {
        self.counters
            .borrow()
            .carried()
            .for_each(|(carried, counts)| visit(carried, counts));
    }

    fn insert(&mut self, pod: Arc<Pod>, assumed: bool) {
        let slot = self.slot_of(&pod.node_name);
        self.assumed += usize::from(assumed);
        self.pods
            .insert(pod.uid.clone(), PodEntry { slot, assumed });
        self.counters.get_mut().pod_added(slot, &pod, &self.related);
        self.nodes[slot.index()]
            .as_mut()
            .expect("slot_of makes it")
            .info
            .add(pod);
    }

    /// The slot of a node, added if the node is unknown.
    fn slot_of(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.by_name.get(name) {
            return *slot;
        }

        let slot = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            Slot(u32::try_from(self.nodes.len() - 1).expect("fewer nodes than four billion"))
        });
        let info = NodeInfo::new(slot, Arc::new(Node::unknown(name)));
        self.nodes[slot.index()] = Some(NodeEntry {
            info,
            exists: false,
        });

        self.by_name.insert(Text::new(name), slot);

        slot
    }

    fn drop_if_empty(&mut self, slot: Slot) {
        let place = &mut self.nodes[slot.index()];
        if let Some(entry) = place.take_if(|entry| !entry.exists && entry.info.pods.is_empty()) {
            self.by_name.remove(entry.info.name());
            self.free.push(slot);
        }
    }

    fn set_columns(&mut self, slot: Slot, node: Option<&Node>) {
        for (key, column) in self.columns.get_mut() {
            Arc::make_mut(column).set(slot, key, node);
        }
    }

    fn set_images(&mut self, old: Option<&Node>, new: Option<&Node>) {
        for (name, _) in old.into_iter().flat_map(|node| &node.images) {
            if let Some(nodes) = self.images.get_mut(name) {
                *nodes -= 1;
                if *nodes == 0 {
                    self.images.remove(name);
                }
            }
        }
        for (name, _) in new.into_iter().flat_map(|node| &node.images) {
            *self.images.entry(name.clone()).or_default() += 1;
        }
    }

    fn interleaved(&self) -> Vec<Slot> {
        let mut zones: BTreeMap<Option<(&str, &str)>, Vec<Slot>> = BTreeMap::new();
        for entry in self.nodes.iter().flatten().filter(|entry| entry.exists) {
            zones
                .entry(entry.info.node.zone())
                .or_default()
                .push(entry.info.slot);
        }

        let longest = zones.values().map(Vec::len).max().unwrap_or_default();

        let turn = |turn: usize| {
            zones
                .values()
                .filter_map(move |nodes| nodes.get(turn).copied())
        };

        (0..longest).flat_map(turn).collect()
    }
}
