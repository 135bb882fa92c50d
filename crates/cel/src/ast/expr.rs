//! What a node can be.

use std::sync::Arc;

use super::{ExprId, NodeId};

/// One node. Operators are calls, named as cel-go names them: `_+_`, `_[_]`, `_?_:_`, `@in`,
/// `_?._`, `_[?_]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: NodeId,
        field: Arc<str>,
        /// From `has(operand.field)`.
        test_only: bool,
    },
    Call {
        function: Arc<str>,
        target: Option<NodeId>,
        args: Vec<NodeId>,
    },
    List {
        elements: Vec<NodeId>,
        /// Indices of the elements written `?e`, ascending.
        optional: Vec<u32>,
    },
    Map {
        entries: Vec<Entry>,
    },
    Struct {
        name: Arc<str>,
        fields: Vec<Field>,
    },
    Comprehension(Box<Comprehension>),
    /// Where the parser refused the text, or a macro refused its arguments. Never in a checked
    /// tree.
    Unspecified,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: ExprId,
    pub key: NodeId,
    pub value: NodeId,
    /// Written `?key: value`.
    pub optional: bool,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub id: ExprId,
    pub name: Arc<str>,
    pub value: NodeId,
    /// Written `?name: value`.
    pub optional: bool,
}

/// A fold over a list or a map: what macros expand to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    pub iter_range: NodeId,
    pub iter_var: Arc<str>,
    /// The value's name, where `iter_var` is that of the index or key.
    pub iter_var2: Option<Arc<str>>,
    pub accu_var: Arc<str>,
    pub accu_init: NodeId,
    pub loop_condition: NodeId,
    pub loop_step: NodeId,
    pub result: NodeId,
}
