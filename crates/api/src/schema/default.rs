//! Defaulting: what is unset is filled in, in nested objects, lists and maps.
//!
//! A custom resource's field is unset when it is absent, or null without being nullable. A built-in one also when it
//! is the zero of its type and no pointer; a built-in struct that is a value is never unset, and its fields get their
//! defaults although nobody wrote it. Run on what is written and, so that a default that came later shows, on what is
//! read. Defaulting twice is defaulting once.

use super::Schema;
use super::node::{Flags, Node, Unset};
use crate::{Map, Text, Value};

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
                if let Some(default) = &item.default
                    && is_unset(value, item)
                {
                    *value = default.clone();
                }
                default(schema, value, item);
            }
        }
        _ => {}
    }
}

/// The defaults of the members that are named.
fn fill_in(schema: &Schema, map: &mut Map, node: &Node) {
    for property in node.properties.iter() {
        let below = schema.node(property.node);
        if !below.flags.has(Flags::DEFAULTS) {
            continue;
        }
        let found = map.get_mut(&property.name);
        if found.as_ref().is_some_and(|value| !is_unset(value, below)) {
            continue;
        }
        let filled = match &below.default {
            Some(value) => value.clone(),
            None if below.unset == Unset::Never => match of_nothing(schema, below) {
                Some(value) => value,
                None => continue,
            },
            None => continue,
        };
        match found {
            Some(place) => *place = filled,
            None => drop(map.insert(Text::new(&property.name), filled)),
        }
    }
}

/// What an object is whose every field is unset; None: still nothing.
fn of_nothing(schema: &Schema, node: &Node) -> Option<Value> {
    let mut empty = Value::object();
    default(schema, &mut empty, node);
    empty.as_object().is_some_and(|map| !map.is_empty()).then_some(empty)
}

fn members(schema: &Schema, map: &mut Map, node: &Node) {
    let mut properties = node.in_order();
    for (name, value) in map.iter_mut() {
        if let Some(id) = properties.find(name) {
            default(schema, value, schema.node(id));
        } else if let Some(id) = node.additional.node() {
            let below = schema.node(id);
            if let Some(default) = &below.default
                && is_unset(value, below)
            {
                *value = default.clone();
            }
            default(schema, value, below);
        }
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
