//! Defaulting: sets unset fields, in nested objects, lists and maps.
//!
//! A custom resource's field is unset when it is absent, or null without being nullable. A built-in
//! one also when it is the zero value of its type and no pointer; a built-in non-pointer struct is
//! never unset, and its fields get their defaults even when it is absent. Applied to what is
//! written and, so that later defaults show, to what is read. The operation is idempotent.

use super::Schema;
use super::node::{Flags, Node, Unset};
use crate::quantity::{MILLI, Quantity};
use crate::{Map, Value};

/// Maximum number of bytes that defaults may add to an object, counted as JSON: the maximum size of
/// an object in etcd.
pub const MOST_ADDED: usize = 1536 * 1024;

/// Defaults would make an object too large: each `{}` in a list may grow to whatever the schema
/// declares, recursively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("defaults of the schema add more than {MOST_ADDED} bytes to the object")]
pub struct TooMuchAdded;

impl Schema {
    /// Sets unset fields below the root.
    ///
    /// # Errors
    /// The defaults would add too much; some have been set.
    pub fn default(&self, object: &mut Value) -> Result<(), TooMuchAdded> {
        Defaulter {
            schema: self,
            left: MOST_ADDED,
        }
        .default(object, self.root())
    }
}

struct Defaulter<'s> {
    schema: &'s Schema,
    /// The number of bytes that may still be added.
    left: usize,
}

impl Defaulter<'_> {
    fn default(&mut self, value: &mut Value, node: &Node) -> Result<(), TooMuchAdded> {
        if !node.flags.has(Flags::DEFAULTS) {
            return Ok(());
        }

        match value {
            Value::Object(map) => {
                self.fill_in(map, node)?;
                self.members(map, node)
            }
            Value::Array(items) => {
                let Some(item) = self.schema.item(node) else {
                    return Ok(());
                };
                items
                    .iter_mut()
                    .try_for_each(|value| self.element(value, item))
            }
            _ => Ok(()),
        }
    }

    /// Sets the defaults of declared members.
    fn fill_in(&mut self, map: &mut Map, node: &Node) -> Result<(), TooMuchAdded> {
        for index in &node.filled {
            let property = &node.properties[usize::from(*index)];
            let below = self.schema.node(property.node);
            let found = map.get_mut(&property.name);
            if found.as_ref().is_some_and(|value| !is_unset(value, below)) {
                continue;
            }

            self.add(property.name.len())?;
            let filled = match &below.default {
                Some(default) => self.copy(default)?,
                None => self.of_unset(below)?,
            };

            match found {
                Some(index) => *index = filled,
                None => drop(map.insert(property.name.clone(), filled)),
            }
        }

        Ok(())
    }

    /// The object with all fields unset.
    fn of_unset(&mut self, node: &Node) -> Result<Value, TooMuchAdded> {
        let mut empty = Value::object();
        self.default(&mut empty, node)?;
        Ok(empty)
    }

    fn members(&mut self, map: &mut Map, node: &Node) -> Result<(), TooMuchAdded> {
        let mut properties = node.in_order();
        for (name, value) in map.iter_mut() {
            if let Some(id) = properties.find(name) {
                self.default(value, self.schema.node(id))?;
            } else if let Some(id) = node.additional.node() {
                self.element(value, self.schema.node(id))?;
                if node.milli {
                    round_up(value);
                }
            }
        }

        Ok(())
    }

    /// An element of a list or a map: it is present, so a null is the zero value of its type.
    fn element(&mut self, value: &mut Value, node: &Node) -> Result<(), TooMuchAdded> {
        if is_unset(value, node) {
            match &node.default {
                Some(default) => *value = self.copy(default)?,
                None if node.unset == Unset::Never => *value = Value::object(),
                None => {}
            }
        }
        self.default(value, node)
    }

    fn copy(&mut self, default: &Value) -> Result<Value, TooMuchAdded> {
        self.add(bytes(default))?;
        Ok(default.clone())
    }

    fn add(&mut self, bytes: usize) -> Result<(), TooMuchAdded> {
        // Names and values have quotes, a colon and a comma.
        self.left = self.left.checked_sub(bytes + 6).ok_or(TooMuchAdded)?;
        Ok(())
    }
}

/// Approximate length of a value as JSON.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Raw(raw) => raw.as_str().len(),
        Value::Array(items) => 2 + items.iter().map(|item| bytes(item) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map
                .iter()
                .map(|(name, value)| name.len() + bytes(value) + 4)
                .sum::<usize>()
        }
    }
}

/// Rounds a quantity up to thousandths. Most texts are visibly no finer.
fn round_up(value: &mut Value) {
    let may_be_finer = match value {
        Value::String(text) => text
            .bytes()
            .any(|byte| matches!(byte, b'.' | b'n' | b'u' | b'e' | b'E')),
        Value::Float(_) => true,
        _ => false,
    };

    if may_be_finer
        && let Ok(mut quantity) = Quantity::from_value(value)
        && !quantity.round_up(MILLI)
    {
        *value = Value::string(quantity.to_string());
    }
}

fn is_unset(value: &Value, node: &Node) -> bool {
    match node.unset {
        Unset::NullIfNotNullable => value.is_null() && !node.nullable,
        Unset::Null | Unset::Never => value.is_null(),
        Unset::Zero => match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Int(number) => *number == 0,
            Value::Float(number) => *number == 0.0,
            Value::Bool(flag) => !flag,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Raw(_) => false,
        },
    }
}
