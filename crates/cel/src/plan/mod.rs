//! What is evaluated: a plan made once from a checked tree.
//!
//! Upstream defines the cost of an evaluation on its plan, so this one has the same shape: a chain
//! of selections is one attribute, constants are folded, and a search in a constant list of
//! scalars is a set.

mod build;
mod fold;
mod set;

use std::sync::Arc;

use coracle_api::schema::Pattern;

pub use build::PlanError;
pub(crate) use build::{is_hashable, is_qualifier, plan};
pub(crate) use set::Set;

use crate::declare::{CostClass, Native, Overload};
use crate::value::Value;

#[derive(Debug)]
pub(crate) enum Node {
    Const(Value<'static>),
    Attribute(Box<Attribute>),
    And(Box<[Node]>),
    Or(Box<[Node]>),
    /// `==`, or `!=`.
    Equal(Box<[Node; 2]>, bool),
    /// A search in a constant list.
    InSet(Box<(Node, Set)>),
    NotStrictlyFalse(Box<Node>),
    /// `or` of optionals.
    OptionalOr(Box<[Node; 2]>),
    OptionalOrValue(Box<[Node; 2]>),
    Call(Box<Call>),
    /// The accumulator of the fold at this level and something more.
    Append(u32, Box<Node>),
    /// The same of a map: a key and a value, or another map.
    Insert(u32, Box<[Node]>),
    List(Box<[Element]>),
    Map(Box<[Entry]>),
    Object(Box<Construction>),
    Fold(Box<Fold>),
}

/// A variable or the result of an expression, and what is selected of it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// The last qualifier is only tested: `has()`.
    pub(crate) tests: bool,
}

#[derive(Debug)]
pub(crate) enum Root {
    /// A variable of the program, by its place among them.
    Global(u32),
    /// A variable of a fold, by its slot.
    Local(u32),
    Result(Node),
    Conditional(Box<(Node, Attribute, Attribute)>),
}

#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: Key,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum Key {
    Const(Value<'static>),
    /// A variable with its own qualifiers, which costs what they cost.
    Attribute(Attribute),
    Result(Node),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) args: Box<[Node]>,
    pub(crate) cost: CostClass,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// One implementation of all overloads.
    Single(Native),
    /// The overload that the checker found. All arguments are evaluated.
    Strict(&'static Overload, Native),
    /// The same; the first argument that fails ends the evaluation of the others.
    Early(&'static Overload, Native),
    /// The overload is known when the arguments are.
    Dispatch(Box<[&'static Overload]>),
    /// `matches`, `find` and `findAll` with a constant expression.
    Pattern(Pattern, Search),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Search {
    Matches,
    Find,
    FindAll,
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct Construction {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<(Arc<str>, Element)>,
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
    /// The slot of the accumulator; the variables are in the two after it.
    pub(crate) slot: u32,
    /// There are two variables.
    pub(crate) pairs: bool,
}

/// A plan, and what it refers to.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    /// The variables it reads.
    pub(crate) variables: Vec<Arc<str>>,
    /// How many slots its folds need.
    pub(crate) slots: u32,
}
