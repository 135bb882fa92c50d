//! Parts of objects, read in place.

use coracle_api::{Map as Members, Value as Node};

use super::{List, Map, Schemed, Text, Value};
use crate::eval::EvalError;

/// An object or an array, and its schema where there is one.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    pub(crate) node: &'a Node,
    pub(crate) schema: Option<Schemed<'a>>,
}

impl<'a> Value<'a> {
    /// A value of an object without a schema: integers are `int`, other numbers `double`.
    #[must_use]
    pub fn of(node: &'a Node) -> Value<'a> {
        match node {
            Node::Null => Value::Null,
            Node::Bool(flag) => Value::Bool(*flag),
            Node::Int(number) => Value::Int(*number),
            Node::Float(number) => Value::Double(*number),
            Node::String(text) => Value::String(Text::Borrowed(text)),
            Node::Array(_) => Value::List(List::Tree(Tree { node, schema: None })),
            Node::Object(_) => Value::Map(Map::Tree(Tree { node, schema: None })),
            // Kept as text because nothing declares what is in it; nothing can be read of it.
            Node::Raw(_) => Value::Opaque(node),
        }
    }
}

impl<'a> Tree<'a> {
    /// The object or array itself.
    #[must_use]
    pub fn json(&self) -> &'a Node {
        self.node
    }

    pub(crate) fn items(&self) -> &'a [Node] {
        self.node.as_array().unwrap_or_default()
    }

    fn members(&self) -> Option<&'a Members> {
        self.node.as_object()
    }

    /// The same without its schema.
    pub(crate) fn plain(self) -> Tree<'a> {
        Tree {
            schema: None,
            ..self
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self.node {
            Node::Array(items) => items.len(),
            Node::Object(members) => members.len(),
            _ => 0,
        }
    }

    pub(crate) fn item(&self, index: usize) -> Result<Value<'a>, EvalError> {
        let node = &self.items()[index];
        match self.schema {
            None => Ok(Value::of(node)),
            Some(schema) => schema.item().read(node),
        }
    }

    pub(crate) fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        let Some(members) = self.members() else {
            return Ok(None);
        };
        match (self.schema, key) {
            (None, Value::String(name)) => Ok(members.get(name).map(Value::of)),
            (None, _) => Ok(None),
            (Some(schema), Value::String(name)) => schema.find(members, name),
            (Some(_), _) => Err(EvalError::NoSuchOverload),
        }
    }

    pub(crate) fn key(&self, index: usize) -> Option<Value<'a>> {
        let (name, _) = self.members()?.at(index)?;
        match self.schema {
            None => Some(Value::String(Text::Borrowed(name))),
            Some(schema) => schema.visible_name(name).map(Value::String),
        }
    }

    pub(crate) fn entry(&self, index: usize) -> Option<(Value<'a>, Result<Value<'a>, EvalError>)> {
        let key = self.key(index)?;
        let (_, node) = self.members()?.at(index)?;
        match self.schema {
            None => Some((key, Ok(Value::of(node)))),
            Some(_) => {
                let value = self.find(&key).transpose()?;
                Some((key, value))
            }
        }
    }
}
