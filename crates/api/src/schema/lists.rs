//! Validates lists of type set or map: no duplicate elements or keys.

use std::collections::HashMap;

use super::Schema;
use super::node::{Flags, Node};
use crate::catalog::ListType;
use crate::field_error::{FieldError, FieldErrors, as_json, shown};
use crate::value::Path;
use crate::{Map, Text, Value};

impl Schema {
    /// Reports duplicates.
    pub fn validate_lists(&self, object: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        if object.as_object().is_some() {
            walk(self, self.root(), object, &Path::Root, &mut errors);
        }
        errors
    }
}

fn walk(schema: &Schema, node: &Node, value: &Value, at: &Path<'_>, errors: &mut FieldErrors) {
    if !node.flags.has(Flags::LISTS) || errors.is_full() {
        return;
    }

    match value {
        Value::Object(map) => members(schema, node, map, at, errors),
        Value::Array(items) => {
            match &node.list {
                Some(ListType::Set) => set(items, at, errors),
                Some(ListType::Map(keys)) => list_map(items, keys, at, errors),
                _ => {}
            }

            if let Some(item) = schema.item(node) {
                for (index, value) in items.iter().enumerate() {
                    walk(schema, item, value, &at.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn members(schema: &Schema, node: &Node, map: &Map, at: &Path<'_>, errors: &mut FieldErrors) {
    if let Some(below) = node.additional.node().map(|id| schema.node(id)) {
        for (name, value) in map.iter() {
            walk(schema, below, value, &at.key(name), errors);
        }
    }
    let mut properties = node.in_order();
    for (name, value) in map.iter() {
        if let Some(id) = properties.find(name) {
            walk(schema, schema.node(id), value, &at.field(name), errors);
        }
    }
}

fn set(items: &[Value], at: &Path<'_>, errors: &mut FieldErrors) {
    if surely_differ(items.len(), |one, other| {
        are_alike(&items[one], &items[other])
    }) {
        return;
    }
    for index in duplicates(items.iter().map(identity), items.len()) {
        errors.push(FieldError::duplicate(
            &at.index(index),
            shown(&items[index]),
        ));
    }
}

fn list_map(items: &[Value], keys: &[Text], at: &Path<'_>, errors: &mut FieldErrors) {
    let other = items
        .iter()
        .position(|item| !matches!(item, Value::Null | Value::Object(_)));
    if let Some(index) = other {
        let detail = "must be an object for an array of list-type map";
        return errors.push(FieldError::invalid(
            &at.index(index),
            shown(&items[index]),
            detail,
        ));
    }

    // Most elements differ in their first key already: it is looked up once for each.
    let mut firsts = [None; FEW];
    for (first, item) in firsts.iter_mut().zip(items) {
        *first = keys.first().and_then(|key| item.get(key));
    }

    let rest = keys.get(1..).unwrap_or_default();
    let alike = |one: usize, other: usize| {
        let same = |key: &Text| both_alike(items[one].get(key), items[other].get(key));
        both_alike(firsts[one], firsts[other]) && rest.iter().all(same)
    };

    if surely_differ(items.len(), alike) {
        return;
    }

    for index in duplicates(
        items.iter().map(|item| Identity::Text(key_of(item, keys))),
        items.len(),
    ) {
        errors.push(FieldError::duplicate(
            &at.index(index),
            key_of(&items[index], keys),
        ));
    }
}

/// The key members of an element, as JSON.
pub(super) fn key_of(item: &Value, keys: &[Text]) -> String {
    let found = keys
        .iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    as_json(&Value::Object(found.collect()))
}

/// Whether no two of a few elements are alike, without allocating; false for many elements.
fn surely_differ(count: usize, alike: impl Fn(usize, usize) -> bool) -> bool {
    count <= FEW && (1..count).all(|one| !(0..one).any(|other| alike(one, other)))
}

fn both_alike(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => are_alike(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Whether two elements may be equal: integers and floats may look so.
fn are_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => one == other,
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            shown(one) == shown(other)
        }
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            as_json(one) == as_json(other)
        }
        _ => one == other,
    }
}

const FEW: usize = 16;

/// The indices of first duplicates: a third occurrence is not reported.
fn duplicates<'v>(things: impl Iterator<Item = Identity<'v>>, count: usize) -> Vec<usize> {
    if count < 2 {
        return Vec::new();
    }

    let mut times: HashMap<Identity<'v>, usize> = HashMap::with_capacity(count);
    let mut found = Vec::new();
    for (index, thing) in things.enumerate() {
        let seen = times.entry(thing).or_default();
        *seen += 1;
        if *seen == 2 {
            found.push(index);
        }
    }

    found
}

pub(super) fn has_duplicates(items: &[Value]) -> bool {
    !duplicates(items.iter().map(identity), items.len()).is_empty()
}

/// The identity of an element. Integers and floats differ, lists and objects compare by their text.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Str(&'v str),
    Text(String),
}

fn identity(value: &Value) -> Identity<'_> {
    match value {
        Value::Null => Identity::Null,
        Value::Bool(flag) => Identity::Bool(*flag),
        Value::Int(number) => Identity::Int(*number),
        Value::Float(number) => Identity::Float(number.to_bits()),
        Value::String(text) => Identity::Str(text),
        other => Identity::Text(as_json(other)),
    }
}
