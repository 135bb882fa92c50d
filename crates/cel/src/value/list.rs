//! Lists. Adding two takes constant time and memory, as upstream's cost says it does, but for those
//! with a schema, which `merged` adds.

use std::sync::Arc;

use super::merged::{Merged, Raw};
use super::{Schemed, Tree, Value};
use crate::eval::EvalError;

#[derive(Clone, Debug)]
pub enum List<'a> {
    /// A constant of the program.
    Slice(&'a [Value<'a>]),
    Shared(Arc<Vec<Value<'a>>>),
    Concat(Arc<Concat<'a>>),
    /// An array of an object.
    Tree(Tree<'a>),
    /// One with a schema, and what was added to it.
    Merged(Arc<Merged<'a>>),
}

/// Two lists, one after the other.
#[derive(Clone, Debug)]
pub struct Concat<'a> {
    first: List<'a>,
    second: List<'a>,
    len: usize,
}

impl<'a> From<Vec<Value<'a>>> for List<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        List::Shared(Arc::new(items))
    }
}

impl<'a> List<'a> {
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            List::Slice(items) => items.len(),
            List::Shared(items) => items.len(),
            List::Concat(both) => both.len,
            List::Tree(tree) => tree.len(),
            List::Merged(merged) => merged.len(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`, which must exist. Data that do not match their schema are an error.
    pub fn get(&self, index: usize) -> Result<Value<'a>, EvalError> {
        let mut list = self;
        let mut index = index;
        loop {
            match list {
                List::Slice(items) => return Ok(items[index].clone()),
                List::Shared(items) => return Ok(items[index].clone()),
                List::Tree(tree) => return tree.item(index),
                List::Merged(merged) => return merged.get(index),
                List::Concat(both) => {
                    let first = both.first.len();
                    if index < first {
                        list = &both.first;
                    } else {
                        list = &both.second;
                        index -= first;
                    }
                }
            }
        }
    }

    /// All elements.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// This list and the other after it.
    #[must_use]
    pub fn and(self, other: List<'a>) -> List<'a> {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let len = self.len().saturating_add(other.len());
        List::Concat(Arc::new(Concat {
            first: self,
            second: other,
            len,
        }))
    }

    /// The schema of an object's list, whose `==`, `+` and `in` are others.
    pub(crate) fn schema(&self) -> Option<Schemed<'a>> {
        match self {
            List::Tree(tree) => tree.schema,
            List::Merged(merged) => Some(merged.schema),
            _ => None,
        }
    }

    /// The elements of a list with a schema, before it is applied to them.
    pub(super) fn raw(&self) -> impl Iterator<Item = Raw<'a>> {
        (0..self.len()).filter_map(|index| match self {
            List::Tree(tree) => tree.items().get(index).map(Raw::Node),
            List::Merged(merged) => Some(merged.raw(index).clone()),
            _ => None,
        })
    }
}
