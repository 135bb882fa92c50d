//! Correlates parts of an object with those before an update.
//!
//! Members of objects correlate by name, elements of a list of type map by their keys; other
//! elements do not correlate. Two parts are equal when everything in them is, regardless of the
//! order of such a list.

use std::collections::HashMap;

use super::node::Node;
use super::{Schema, lists};
use crate::Text;
use crate::Value;

/// The elements of the old list, by their keys.
pub struct Elements<'o> {
    keys: &'o [Text],
    by_key: HashMap<String, &'o Value>,
}

impl<'o> Elements<'o> {
    /// `None`: elements of this list do not correlate.
    pub fn of(node: &'o Node, old: &'o Value) -> Option<Elements<'o>> {
        let keys = node.list_keys()?;
        let mut by_key = HashMap::new();
        for element in old
            .as_array()?
            .iter()
            .filter(|element| has_keys(element, keys))
        {
            by_key
                .entry(lists::key_of(element, keys))
                .or_insert(element);
        }

        Some(Elements { keys, by_key })
    }

    pub fn of_element(&self, new: &Value) -> Option<&'o Value> {
        let key = has_keys(new, self.keys).then(|| lists::key_of(new, self.keys))?;
        self.by_key.get(&key).copied()
    }
}

/// Whether an element has all its keys; others do not correlate.
fn has_keys(element: &Value, keys: &[Text]) -> bool {
    match keys {
        [] => false,
        [only] => matches!(
            element.get(only),
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_))
        ),
        several => several.iter().all(|key| element.get(key).is_some()),
    }
}

/// Whether a part is unchanged.
pub fn same(schema: &Schema, node: &Node, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(before)) => {
            let (Some(item), Some(elements)) = (schema.item(node), Elements::of(node, old)) else {
                return new == before;
            };
            new.len() == before.len()
                && new.iter().all(|new| {
                    elements
                        .of_element(new)
                        .is_some_and(|old| same(schema, item, new, old))
                })
        }
        (Value::Object(new), Value::Object(old)) => {
            // Members that the schema does not declare never count as unchanged.
            let unchanged = |(name, new): (&str, &Value)| {
                let below = schema.member(node, name).zip(old.get(name));
                below.is_some_and(|(below, old)| same(schema, below, new, old))
            };
            new.len() == old.len() && new.iter().all(unchanged)
        }
        _ => new == old,
    }
}
