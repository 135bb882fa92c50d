//! A field that is there twice: upstream decodes the second text into what the first one left.

use crate::Value;
use crate::catalog::{FieldRef, Node, Shape};

/// Puts the second value of a field into the first one.
pub(super) fn merge(old: &mut Value, new: Value, field: FieldRef<'_>) {
    merge_at(old, new, field.node(), field.field.presence.pointer());
}

fn merge_at(old: &mut Value, new: Value, node: Node<'_>, is_pointer: bool) {
    match (node.shape, old, new) {
        // Null empties what may be absent, and leaves a struct as it is.
        (Shape::Struct(_), Value::Object(_), Value::Null) if !is_pointer => {}
        (Shape::Struct(id), Value::Object(old), Value::Object(new)) => {
            let of = node.page.struct_of(id);
            for (name, value) in new.into_members() {
                match (old.get_mut(&name), of.field(&name)) {
                    (Some(member), Some(field)) => merge(member, value, field),
                    _ => drop(old.insert(name, value)),
                }
            }
        }
        (Shape::Map(_), Value::Object(old), Value::Object(new)) => {
            for (name, value) in new.into_members() {
                old.insert(name, value);
            }
        }
        (Shape::List(_), Value::Array(old), Value::Array(new)) => {
            let item = node.item().expect("a list has items");
            old.truncate(new.len());
            for (index, value) in new.into_iter().enumerate() {
                match old.get_mut(index) {
                    Some(element) => merge_at(element, value, item, false),
                    None => old.push(value),
                }
            }
        }
        (_, old, new) => *old = new,
    }
}
