//! Sums of lists with a schema: they have it, too, so that a union of sets is a set.
//!
//! An element keeps the form that it had before the schema was applied, as in upstream, which adds
//! an object's own data to such a list, and Go's values of everything else.

use coracle_api::catalog::ListType;
use coracle_api::{Text as Name, Value as Node};

use super::{List, Map, Schemed, Value};
use crate::escape::escape;
use crate::eval::{EvalError, Work};

/// A list with a schema and what an expression added to it.
#[derive(Clone, Debug)]
pub struct Merged<'a> {
    pub(super) schema: Schemed<'a>,
    items: Vec<Raw<'a>>,
}

/// An element before its schema is applied.
#[derive(Clone, Debug)]
pub(super) enum Raw<'a> {
    Node(&'a Node),
    /// Of something else than an object.
    Value(Value<'a>),
}

impl<'a> Merged<'a> {
    /// The sum of a list with this schema and another: of sets the union, of lists with keys the
    /// merge.
    pub(crate) fn new(
        schema: Schemed<'a>,
        a: &List<'a>,
        b: &List<'a>,
        work: &mut Work,
    ) -> Result<Merged<'a>, EvalError> {
        work.allocate_list(a.len().saturating_add(b.len()))?;
        let mut items: Vec<Raw<'_>> = a.raw().collect();
        let own = items.len();

        for item in b.iter() {
            let item = Raw::of(item?);
            match schema.list_type() {
                Some(ListType::Set) => {
                    if position(&items, |own| own.is(&item, work))?.is_none() {
                        items.push(item);
                    }
                }
                Some(ListType::Map(keys)) => {
                    let same = position(&items[..own], |own| own.has_keys_of(&item, keys, work))?;
                    match same {
                        Some(at) => items[at] = item,
                        None => items.push(item),
                    }
                }
                _ => items.push(item),
            }
        }
        Ok(Merged { schema, items })
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn raw(&self, index: usize) -> &Raw<'a> {
        &self.items[index]
    }

    pub(super) fn get(&self, index: usize) -> Result<Value<'a>, EvalError> {
        self.schema.item().read_raw(&self.items[index])
    }
}

/// The last element that is meant.
fn position<'a>(
    items: &[Raw<'a>],
    mut is_meant: impl FnMut(&Raw<'a>) -> Result<bool, EvalError>,
) -> Result<Option<usize>, EvalError> {
    for (index, item) in items.iter().enumerate().rev() {
        if is_meant(item)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

impl<'a> Raw<'a> {
    pub(super) fn of(value: Value<'a>) -> Raw<'a> {
        match value {
            Value::Map(Map::Tree(tree)) | Value::List(List::Tree(tree)) => Raw::Node(tree.node),
            Value::Opaque(node) => Raw::Node(node),
            other => Raw::Value(other),
        }
    }

    /// Whether two elements of a set are the same: of the same kind, not only the same number.
    pub(super) fn is(&self, other: &Raw<'_>, work: &mut Work) -> Result<bool, EvalError> {
        work.spend(1)?;
        Ok(match (self, other) {
            (Raw::Node(a), Raw::Node(b)) => is_scalar(a, &Value::of(b)),
            (Raw::Node(a), Raw::Value(b)) => is_scalar(a, b),
            (Raw::Value(a), Raw::Node(b)) => is_scalar(b, a),
            (Raw::Value(a), Raw::Value(b)) => match (a, b) {
                (Value::Null, Value::Null) => true,
                (Value::Bool(a), Value::Bool(b)) => a == b,
                (Value::Int(a), Value::Int(b)) => a == b,
                (Value::Double(a), Value::Double(b)) => a == b,
                (Value::String(a), Value::String(b)) => a == b,
                (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
                (Value::Duration(a), Value::Duration(b)) => a == b,
                _ => false,
            },
        })
    }

    /// Whether two elements of a list with keys have the same ones. As in upstream, a key is looked
    /// up as expressions write it, and maps that an expression made have none.
    pub(super) fn has_keys_of(
        &self,
        other: &Raw<'_>,
        keys: &[Name],
        work: &mut Work,
    ) -> Result<bool, EvalError> {
        let (Raw::Node(a), Raw::Node(b)) = (self, other) else {
            return Ok(false);
        };
        for key in keys {
            work.spend(1)?;
            let name = escape(key);
            let name = name.as_deref().unwrap_or(key);
            let of = |node: &'_ Node| node.get(name).cloned().unwrap_or(Node::Null);
            if !is_scalar(&of(a), &Value::of(&of(b))) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a scalar of an object is this value: of the same kind, not only the same number.
pub(super) fn is_scalar(node: &Node, value: &Value<'_>) -> bool {
    match (node, value) {
        (Node::Null, Value::Null) => true,
        (Node::Bool(a), Value::Bool(b)) => a == b,
        (Node::Int(a), Value::Int(b)) => a == b,
        (Node::Float(a), Value::Double(b)) => a == b,
        (Node::String(a), Value::String(b)) => a.as_str() == &**b,
        _ => false,
    }
}
