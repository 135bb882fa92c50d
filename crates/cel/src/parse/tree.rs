//! The syntax of a text, before macros: what both parsers make, and [`super::build`] reads.
//!
//! A tree may be incomplete, where the text is. Nodes are kept in a vector, so that a chain of
//! 50,000 selections is no deep structure.

use crate::lex::{Kind, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeId(u32);

/// A token of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) offset: i32,
    /// It was missing and is assumed: it has a place, but no text.
    pub(crate) missing: bool,
}

impl From<Token> for Leaf {
    fn from(token: Token) -> Self {
        Self {
            kind: token.kind,
            start: token.start,
            end: token.end,
            offset: i32::try_from(token.offset).unwrap_or(i32::MAX),
            missing: false,
        }
    }
}

impl Leaf {
    pub(crate) fn text(self, source: &str) -> &str {
        if self.missing {
            return "<missing undefined>";
        }
        &source[self.start as usize..self.end as usize]
    }
}

/// A field's name, at the place of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldName {
    pub(crate) start: i32,
    /// `None` where there is none.
    pub(crate) name: Option<Leaf>,
}

/// An element of a list, or a key of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) optional: bool,
    pub(crate) value: Option<TreeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct MapParts {
    pub(crate) keys: Vec<Element>,
    pub(crate) colons: Vec<Leaf>,
    pub(crate) values: Vec<Option<TreeId>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StructParts {
    pub(crate) start: i32,
    pub(crate) fields: Vec<StructField>,
    pub(crate) colons: Vec<Leaf>,
    pub(crate) values: Vec<Option<TreeId>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StructField {
    pub(crate) optional: bool,
    pub(crate) name: Option<FieldName>,
}

/// A node, and where it begins. Parts that are `None` are those that the text lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Ternary {
        condition: Option<TreeId>,
        operator: Leaf,
        then: Option<TreeId>,
        otherwise: Option<TreeId>,
    },
    /// `&&` or `||`.
    Logic {
        first: Option<TreeId>,
        operators: Vec<Leaf>,
        rest: Vec<Option<TreeId>>,
    },
    /// A comparison or a calculation.
    Binary {
        left: Option<TreeId>,
        operator: Leaf,
        right: Option<TreeId>,
    },
    /// `!` or `-`, several times.
    Prefix {
        operators: Vec<Leaf>,
        operand: Option<TreeId>,
    },
    Select {
        start: i32,
        operand: Option<TreeId>,
        dot: Option<Leaf>,
        optional: bool,
        field: Option<FieldName>,
    },
    MemberCall {
        start: i32,
        operand: Option<TreeId>,
        name: Option<Leaf>,
        open: Option<Leaf>,
        args: Vec<Option<TreeId>>,
    },
    Index {
        start: i32,
        operand: Option<TreeId>,
        open: Option<Leaf>,
        optional: bool,
        index: Option<TreeId>,
    },
    Ident {
        start: i32,
        leading_dot: bool,
        name: Option<Leaf>,
    },
    GlobalCall {
        start: i32,
        leading_dot: bool,
        name: Option<Leaf>,
        open: Option<Leaf>,
        args: Vec<Option<TreeId>>,
    },
    List {
        open: Option<Leaf>,
        elements: Vec<Element>,
    },
    Map {
        open: Option<Leaf>,
        entries: Option<MapParts>,
    },
    Struct {
        leading_dot: bool,
        names: Vec<Leaf>,
        open: Option<Leaf>,
        fields: Option<StructParts>,
    },
    Literal {
        start: i32,
        negative: bool,
        token: Leaf,
    },
    /// Something between two operators that is nothing.
    BadOperand { start: i32 },
}

/// The nodes of one text.
#[derive(Debug, Default)]
pub(crate) struct Forest(Vec<Tree>);

impl Forest {
    pub(crate) fn add(&mut self, tree: Tree) -> TreeId {
        let id = TreeId(u32::try_from(self.0.len()).expect("a source is limited"));
        self.0.push(tree);
        id
    }

    pub(crate) fn get(&self, id: TreeId) -> &Tree {
        &self.0[id.0 as usize]
    }
}
