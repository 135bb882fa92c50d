//! Removes fields from an object.

use super::list::element_of;
use crate::apply::element::Element;
use crate::apply::order;
use crate::apply::set::{Node, Set};
use crate::apply::types::{Case, Fields, List, Relationship, Type};
use crate::{Map, Text, Value};

/// The value without the fields of a set. A map or list from which something was removed stays,
/// even if it is empty.
pub(in crate::apply) fn remove(value: &Value, set: &Set, of: Type<'_>) -> Value {
    if let Value::Raw(_) = value {
        return remove(&order::tree(value), set, of);
    }

    match (of.atom().case(value), value) {
        (Case::Map(fields), Value::Object(map)) if !fields.whole => {
            Value::Object(without_members(map, set, &fields))
        }
        (Case::List(list), Value::Array(items))
            if !matches!(list.relationship, Relationship::Atomic) =>
        {
            Value::Array(without_items(items, set, &list))
        }
        // What is owned as a whole has no removable parts.
        (Case::Map(_), Value::Object(_)) => Value::object(),
        (Case::List(_), Value::Array(_)) => Value::Array(Vec::new()),
        _ => value.clone(),
    }
}

fn without_members(map: &Map, set: &Set, fields: &Fields<'_>) -> Map {
    let mut kept: Vec<(Text, Value)> = Vec::with_capacity(map.len());
    for (name, value) in map.iter() {
        let of = || fields.member(name).map(|(of, _)| of);
        if let Some(value) = without(value, set.field(name), of) {
            kept.push((Text::new(name), value));
        }
    }
    Map::from_members(kept)
}

fn without_items(items: &[Value], set: &Set, list: &List<'_>) -> Vec<Value> {
    let kept = items.iter().filter_map(|item| {
        let element: Option<Element> = element_of(list, item).ok();
        let node = element.and_then(|element| set.node(&element));
        without(item, node, || Some(list.item))
    });
    kept.collect()
}

fn without<'s>(
    value: &Value,
    node: Option<&Node>,
    of: impl FnOnce() -> Option<Type<'s>>,
) -> Option<Value> {
    match node {
        None => Some(value.clone()),
        Some(node) if node.member => None,
        Some(node) => match of() {
            Some(of) => Some(remove(value, &node.below, of)),
            None => Some(value.clone()),
        },
    }
}
