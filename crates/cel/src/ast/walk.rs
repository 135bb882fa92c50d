//! Going through a tree.

use super::{Ast, Expr, NodeId};

impl Ast {
    /// The nodes that `node` is made of, in the order in which they are evaluated and shown.
    #[must_use]
    pub fn children(&self, node: NodeId) -> Vec<NodeId> {
        match self.expr(node) {
            Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified => Vec::new(),
            Expr::Select { operand, .. } => vec![*operand],
            Expr::Call { target, args, .. } => target.iter().chain(args).copied().collect(),
            Expr::List { elements, .. } => elements.clone(),
            Expr::Map { entries } => entries
                .iter()
                .flat_map(|entry| [entry.key, entry.value])
                .collect(),
            Expr::Struct { fields, .. } => fields.iter().map(|field| field.value).collect(),
            Expr::Comprehension(fold) => vec![
                fold.iter_range,
                fold.accu_init,
                fold.loop_condition,
                fold.loop_step,
                fold.result,
            ],
        }
    }

    /// All nodes, those that another is made of before it, each with the nodes it is part of: the
    /// root first.
    pub fn post_order(&self, visit: &mut impl FnMut(NodeId, &[NodeId])) {
        // What is left of each node on the path, the next one last.
        let mut path = vec![self.root()];
        let mut left = vec![self.reversed_children(self.root())];
        while let Some(children) = left.last_mut() {
            match children.pop() {
                Some(child) => {
                    path.push(child);
                    left.push(self.reversed_children(child));
                }
                None => {
                    left.pop();
                    if let Some(node) = path.pop() {
                        visit(node, &path);
                    }
                }
            }
        }
    }

    fn reversed_children(&self, node: NodeId) -> Vec<NodeId> {
        let mut children = self.children(node);
        children.reverse();
        children
    }
}
