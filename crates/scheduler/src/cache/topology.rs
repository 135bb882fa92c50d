//! Node labels as columns of small numbers: which nodes share the value of a label.
//!
//! Plugins that count pods by zone, rack or host would otherwise compare strings for every node and
//! pod. A column is built when a label is first used, and follows the nodes from then on.

use std::collections::HashMap;

use coracle_api::Text;

use super::node_info::Slot;
use crate::node::Node;

/// All nodes with the same value of one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Domain(u32);

impl Domain {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One label: the domain of each node.
#[derive(Clone, Debug, Default)]
pub struct Column {
    domains: HashMap<Text, Domain>,
    of: Vec<Option<Domain>>,
}

impl Column {
    /// The domain of a node; `None` if it lacks the label.
    pub fn domain(&self, slot: Slot) -> Option<Domain> {
        self.of.get(slot.index()).copied().flatten()
    }

    /// The number of domains assigned so far.
    pub fn size(&self) -> usize {
        self.domains.len()
    }

    pub(super) fn set(&mut self, slot: Slot, key: &str, node: Option<&Node>) {
        let value = node.and_then(|node| node.labels.get(key));
        let domain = value.map(|value| match self.domains.get(value) {
            Some(domain) => *domain,
            None => {
                let domain = Domain(
                    u32::try_from(self.domains.len()).expect("fewer domains than nodes, which fit"),
                );
                self.domains.insert(Text::new(value), domain);
                domain
            }
        });

        if self.of.len() <= slot.index() {
            self.of.resize(slot.index() + 1, None);
        }

        self.of[slot.index()] = domain;
    }
}
