//! The canonical form of a tree: what upstream would write.
//!
//! Decoders keep what was sent: nulls, explicit zeros, absent structs, `1000m`. Upstream decodes
//! into structs and encodes those, so its output has a fixed form: a value that is empty and may be
//! omitted is absent, a struct that is not a pointer is present even when empty, a list or map that
//! is always written is `null` when unset, quantities, times and durations have their canonical
//! text. [`canonicalize`] brings a tree into that form; protobuf decoding yields it directly. The
//! operation is idempotent.

use crate::catalog::{Field, FieldRef, Node, RawKind, Shape, Struct};
use crate::quantity::Quantity;
use crate::time::{self, MicroTime, Time};
use crate::{Map, Value};

/// Brings an object of the given type into canonical form. Expects a tree that was decoded with
/// that type.
pub fn canonicalize(value: &mut Value, node: Node<'_>) {
    walk(value, node, Empty::Stays);
}

/// As [`canonicalize`], for an object that upstream has stored and read again: protobuf cannot
/// distinguish an empty list or map from an absent one, so those that are always written become
/// `null`.
pub fn canonicalize_stored(value: &mut Value, node: Node<'_>) {
    walk(value, node, Empty::IsAbsent);
}

/// How to treat a list or map that is given, empty and always written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Stays,
    IsAbsent,
}

fn walk(value: &mut Value, node: Node<'_>, empty: Empty) {
    match node.shape {
        Shape::Struct(id) => canonicalize_struct(value, node.page.struct_of(id), empty),
        Shape::List(_) | Shape::Map(_) | Shape::Strings => {
            let Some(item) = node.item() else { return };
            match value {
                Value::Array(items) => items
                    .iter_mut()
                    .for_each(|element| canonicalize_item(element, item, empty)),
                Value::Object(map) => map
                    .values_mut()
                    .for_each(|element| canonicalize_item(element, item, empty)),
                _ => {}
            }
        }
        Shape::SchemaOrArray(id) | Shape::SchemaOrBool(id) | Shape::SchemaOrStrings(id) => {
            match value {
                Value::Object(_) => canonicalize_struct(value, node.page.struct_of(id), empty),
                Value::Array(items) if matches!(node.shape, Shape::SchemaOrArray(_)) => {
                    let schema = node.page.struct_of(id);
                    items
                        .iter_mut()
                        .for_each(|element| canonicalize_struct(element, schema, empty));
                }
                _ => {}
            }
        }
        Shape::Quantity | Shape::Time | Shape::MicroTime | Shape::Duration => {
            if let Value::String(text) = value
                && let Some(canonical) = canonical_text(text, node.shape)
                && canonical != text.as_str()
            {
                *value = Value::string(canonical);
            }
        }
        _ => {}
    }
}

/// An element cannot be absent: null becomes the zero value of its type.
fn canonicalize_item(element: &mut Value, item: Node<'_>, empty: Empty) {
    if element.is_null() {
        *element = zero(item.shape);
    }
    walk(element, item, empty);
}

/// Visits the members that are present, and the few fields that are written even when absent.
fn canonicalize_struct(value: &mut Value, of: Struct<'_>, empty: Empty) {
    let mut members = match value {
        Value::Object(map) => std::mem::take(map).into_members(),
        Value::Null => Vec::new(),
        _ => return,
    };

    let mut expected = 0;
    members.retain_mut(|(name, found)| {
        // Members that the type does not declare are left unchanged.
        let Some(index) = of.position_near(name, expected) else {
            return true;
        };
        expected = index + 1;
        canonicalize_member(found, of.at(index), empty)
    });

    for index in of.always() {
        let field = of.at(usize::from(*index));
        if let Err(at) = members.binary_search_by(|(name, _)| name.as_str().cmp(field.name()))
            && let Some(mut written) = when_unset(field.field)
        {
            if !written.is_null() {
                walk(&mut written, field.node(), empty);
            }
            members.insert(at, (field.field.name.clone(), written));
        }
    }

    *value = Value::Object(Map::from_members(members));
}

/// Brings a member into canonical form; false: it is not written.
fn canonicalize_member(found: &mut Value, field: FieldRef<'_>, empty: Empty) -> bool {
    if !found.is_null() {
        walk(found, field.node(), empty);
        if !is_zero_value(found, field.field) {
            return true;
        }
    }

    match when_unset(field.field) {
        None => false,
        // A list that is given and empty stays `[]` until it is stored; only an absent one is null.
        Some(Value::Null) => {
            if empty == Empty::IsAbsent {
                *found = Value::Null;
            }
            true
        }
        Some(mut written) => {
            walk(&mut written, field.node(), empty);
            *found = written;
            true
        }
    }
}

/// What JSON has for a field that is not set; `None`: nothing.
pub(crate) fn when_unset(field: &Field) -> Option<Value> {
    let presence = field.presence;
    if presence.pointer()
        || matches!(
            field.shape,
            Shape::List(_) | Shape::Map(_) | Shape::Bytes | Shape::Strings
        )
    {
        return if presence.omit_empty() {
            None
        } else {
            Some(Value::Null)
        };
    }

    match field.shape {
        // A struct that is not a pointer is always written.
        Shape::Struct(_) => Some(Value::object()),
        Shape::Time | Shape::MicroTime if presence.omit_zero() => None,
        Shape::Raw(RawKind::Any) if presence.omit_empty() => None,
        Shape::Time | Shape::MicroTime => Some(Value::Null),
        Shape::Raw(_)
        | Shape::SchemaOrArray(_)
        | Shape::SchemaOrBool(_)
        | Shape::SchemaOrStrings(_) => Some(Value::Null),
        Shape::IntOrString | Shape::Quantity | Shape::Duration => Some(zero(field.shape)),
        _ if presence.omit_empty() => None,
        _ => Some(zero(field.shape)),
    }
}

/// The zero value of a type, where it must be written.
pub(super) fn zero(shape: Shape) -> Value {
    match shape {
        Shape::String => Value::string(""),
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::IntOrString => Value::Int(0),
        Shape::Double => Value::Float(0.0),
        Shape::Quantity => Value::string("0"),
        Shape::Duration => Value::string("0s"),
        Shape::Struct(_) => Value::object(),
        _ => Value::Null,
    }
}

/// Whether a present value counts as unset: a zero value that is not behind a pointer.
fn is_zero_value(value: &Value, field: &Field) -> bool {
    if field.presence.pointer() {
        return false;
    }

    match (field.shape, value) {
        (Shape::String | Shape::Bytes, Value::String(text)) => text.is_empty(),
        (Shape::Bool, Value::Bool(flag)) => !flag,
        (Shape::Int32 | Shape::Int64, Value::Int(number)) => *number == 0,
        (Shape::Double, Value::Float(number)) => *number == 0.0,
        (Shape::List(_) | Shape::Strings, Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// The canonical text of a quantity, time or duration.
fn canonical_text(text: &str, shape: Shape) -> Option<String> {
    match shape {
        Shape::Quantity => text
            .parse::<Quantity>()
            .ok()
            .map(|quantity| quantity.to_string()),
        Shape::Time => Time::parse(text).ok().map(|time| time.to_string()),
        Shape::MicroTime => MicroTime::parse(text).ok().map(|time| time.to_string()),
        Shape::Duration => time::parse_duration(text)
            .ok()
            .map(|duration| duration.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::BUILTIN;

    #[test]
    fn the_fields_that_are_always_written_have_an_unset_value() {
        for of in BUILTIN.structs() {
            for (index, field) in of.fields().iter().enumerate() {
                let listed = of.always().iter().any(|at| usize::from(*at) == index);
                assert_eq!(
                    listed,
                    when_unset(field).is_some(),
                    "{}.{}",
                    of.declared.name,
                    field.name
                );
            }
        }
    }
}
