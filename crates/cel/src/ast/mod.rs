//! The tree of an expression: nodes in a vector, referred to by index.
//!
//! Every node has also the id that cel-go would give it, counted in the order of its parser. Ids
//! decide nothing in here, but errors at equal places and the calls of macros are found by them.

mod debug;
mod expr;
pub mod operators;
mod walk;

use std::sync::Arc;

pub use expr::{Comprehension, Entry, Expr, Field, Literal};

use crate::source::Source;

/// A node of one tree: its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// The index, for tables beside the tree.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An expression id as cel-go counts them, from 1. Entries of maps and fields of structs have ids
/// too, although they are no nodes.
pub type ExprId = u64;

#[derive(Clone, Debug)]
struct Node {
    expr: Expr,
    id: ExprId,
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Ast {
    nodes: Vec<Node>,
    /// Where ids are in the source, in characters, by id.
    offsets: Vec<Option<u32>>,
    root: NodeId,
    source: Arc<Source>,
}

impl Ast {
    /// An empty tree over `source`: nodes are added, then the root is set.
    #[must_use]
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self {
            nodes: Vec::new(),
            offsets: Vec::new(),
            root: NodeId(0),
            source,
        }
    }

    #[must_use]
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// # Panics
    /// If `node` is of another tree.
    #[must_use]
    pub fn expr(&self, node: NodeId) -> &Expr {
        &self.nodes[node.index()].expr
    }

    /// The id that cel-go gives `node`.
    ///
    /// # Panics
    /// If `node` is of another tree.
    #[must_use]
    pub fn id(&self, node: NodeId) -> ExprId {
        self.nodes[node.index()].id
    }

    /// How many nodes the tree has, those that macros replaced included: the size of a table beside
    /// it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where `node` is, in characters from the beginning; 0 if it is not known.
    #[must_use]
    pub fn offset(&self, node: NodeId) -> u32 {
        self.offset_of(self.id(node)).unwrap_or(0)
    }

    /// Where the node, entry or field with this id is.
    #[must_use]
    pub fn offset_of(&self, id: ExprId) -> Option<u32> {
        self.offsets
            .get(usize::try_from(id).ok()?)
            .copied()
            .flatten()
    }

    /// Whether going through the tree by recursion needs [`crate::large_stack`].
    #[must_use]
    pub fn is_deep(&self) -> bool {
        let mut height = 0;
        self.post_order(&mut |_, path| height = height.max(path.len()));
        height > crate::large_stack::HIGH
    }

    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    pub(crate) fn add(&mut self, id: ExprId, expr: Expr) -> NodeId {
        let node = NodeId(
            u32::try_from(self.nodes.len())
                .expect("a source of 100,000 characters makes fewer nodes"),
        );
        self.nodes.push(Node { expr, id });
        node
    }

    pub(crate) fn replace(&mut self, node: NodeId, expr: Expr) {
        self.nodes[node.index()].expr = expr;
    }

    /// Of each id; negative ones are those of nothing in the text.
    pub(crate) fn set_offsets(&mut self, offsets: Vec<Option<i32>>) {
        let place = |offset: Option<i32>| u32::try_from(offset?).ok();
        self.offsets = offsets.into_iter().map(place).collect();
    }

    pub(crate) fn set_root(&mut self, root: NodeId) {
        self.root = root;
    }
}
