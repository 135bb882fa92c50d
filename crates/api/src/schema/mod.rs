//! Schemas: validation, defaulting and pruning of objects.
//!
//! One engine for built-in kinds and custom resources. A CRD's `openAPIV3Schema` is read through
//! [`Props`], validated ([`check`], in upstream's words), and compiled by `build` into a
//! [`Schema`]: nodes in a vector that refer to each other by index. A built-in kind is compiled
//! from the catalogue into the same form. Walks over an object follow the nodes: `prune` drops
//! undeclared fields, `default` sets defaults, `validate` validates, `lists` reports duplicates,
//! `embedded` handles embedded objects. Each node knows whether anything at or below it concerns
//! such a walk, so that the rest of the object is not visited.
//!
//! No I/O, and no CEL: rules are kept in [`Node::rules`] for the caller to evaluate.

mod build;
pub mod check;
pub mod correlate;
mod default;
mod embedded;
mod format;
mod lists;
mod node;
mod pattern;
mod props;
mod prune;
mod validate;

#[cfg(test)]
mod tests;

pub use build::{BuildError, for_kind};
pub use default::{MOST_ADDED, TooMuchAdded};
pub use format::Format;
pub use node::{
    Additional, Bound, Checks, Flags, Node, NodeId, Property, Rule, Type, Types, Unset,
};
pub use pattern::{Pattern, PatternError};
pub use props::Props;

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
}

impl Schema {
    pub fn root(&self) -> &Node {
        self.node(self.root)
    }

    pub fn root_id(&self) -> NodeId {
        self.root
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of the member `name` of an object of this node: a property, or the additional
    /// properties.
    pub fn member(&self, of: &Node, name: &str) -> Option<&Node> {
        match of.property(name) {
            Some(property) => Some(self.node(property.node)),
            None => of.additional.node().map(|id| self.node(id)),
        }
    }

    /// The node of the elements of a list of this node.
    pub fn item(&self, of: &Node) -> Option<&Node> {
        of.items.map(|id| self.node(id))
    }
}
