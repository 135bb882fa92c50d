//! Defaulting: what is unset is filled in, in nested objects, lists and maps.
//!
//! A custom resource's field is unset when it is absent, or null without being nullable. A built-in one also when it
//! is the zero of its type and no pointer; a built-in struct that is a value is never unset, and its fields get their
//! defaults although nobody wrote it. Run on what is written and, so that a default that came later shows, on what is
//! read. Defaulting twice is defaulting once.

use super::Schema;
use super::node::{Flags, Node, Unset};
use crate::quantity::{MILLI, Quantity};
use crate::{Map, Value};

impl Schema {
    /// Fills in what is unset below the root.
    pub fn default(&self, object: &mut Value) {
        default(self, object, self.root());
    }
}

fn default(schema: &Schema, value: &mut Value, node: &Node) {
    if !node.flags.has(Flags::DEFAULTS) {
        return;
    }
    match value {
        Value::Object(map) => {
            fill_in(schema, map, node);
            members(schema, map, node);
        }
        Value::Array(items) => {
            let Some(item) = schema.item(node) else { return };
            for value in items {
                element(schema, value, item);
            }
        }
        _ => {}
    }
}

/// The defaults of the members that are named.
fn fill_in(schema: &Schema, map: &mut Map, node: &Node) {
    for place in &node.filled {
        let property = &node.properties[usize::from(*place)];
        let below = schema.node(property.node);
        let found = map.get_mut(&property.name);
        if found.as_ref().is_some_and(|value| !is_unset(value, below)) {
            continue;
        }
        let filled = below.default.clone().unwrap_or_else(|| of_nothing(schema, below));
        match found {
            Some(place) => *place = filled,
            None => drop(map.insert(property.name.clone(), filled)),
        }
    }
}

/// What an object is whose every field is unset.
fn of_nothing(schema: &Schema, node: &Node) -> Value {
    let mut empty = Value::object();
    default(schema, &mut empty, node);
    empty
}

fn members(schema: &Schema, map: &mut Map, node: &Node) {
    let mut properties = node.in_order();
    for (name, value) in map.iter_mut() {
        if let Some(id) = properties.find(name) {
            default(schema, value, schema.node(id));
        } else if let Some(id) = node.additional.node() {
            element(schema, value, schema.node(id));
            if node.milli {
                round_up(value);
            }
        }
    }
}

/// An element of a list or a map: it is there, so a null is the zero of its type.
fn element(schema: &Schema, value: &mut Value, node: &Node) {
    if is_unset(value, node) {
        match &node.default {
            Some(default) => *value = default.clone(),
            None if node.unset == Unset::Never => *value = Value::object(),
            None => {}
        }
    }
    default(schema, value, node);
}

/// Rounds a quantity up to thousandths. Most texts show that they are no finer.
fn round_up(value: &mut Value) {
    let may_be_finer = match value {
        Value::String(text) => text.bytes().any(|byte| matches!(byte, b'.' | b'n' | b'u' | b'e' | b'E')),
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
