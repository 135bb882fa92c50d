//! Checks a merged tree against its type, with the errors of upstream's conversion of trees.
//!
//! Strategic merge works on untyped trees; upstream converts the result to a struct member by
//! member, not through text, so type errors differ from a decoder's. Numbers are converted as Go
//! converts them: a whole float is an integer, and one of 64 bits is truncated to 32.

use crate::catalog::{Node, Shape, Struct};
use crate::codec::json::{self, go_names};
use crate::{Map, Path, Value};

/// A type error, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    #[error("cannot restore {into} from {found}")]
    Container {
        into: &'static str,
        found: &'static str,
    },
    #[error("cannot restore struct from: {found}")]
    Struct { found: &'static str },
    #[error("cannot convert {found} to {wanted}")]
    Number { found: &'static str, wanted: String },
    #[error("unrecognized type: {wanted}")]
    Scalar { wanted: &'static str },
    #[error("error decoding from json: {0}")]
    Bytes(String),
    /// The error of a type with its own text format.
    #[error("{0}")]
    Own(String),
}

/// Checks the members of an object of the given type, and converts its numbers. Unknown members
/// stay.
pub fn restore(object: &mut Map, of: Struct<'_>) -> Result<(), RestoreError> {
    members(object, of, &Path::Root)
}

fn members(object: &mut Map, of: Struct<'_>, path: &Path<'_>) -> Result<(), RestoreError> {
    for field in of.iter() {
        if let Some(member) = object.get_mut(field.name()) {
            value(member, field.node(), &path.field(field.name()), Some(of))?;
        }
    }
    Ok(())
}

/// `within` is the innermost struct on the path.
fn value(
    found: &mut Value,
    node: Node<'_>,
    path: &Path<'_>,
    within: Option<Struct<'_>>,
) -> Result<(), RestoreError> {
    if found.is_null() {
        return Ok(());
    }

    match (node.shape, found) {
        (Shape::Struct(id), Value::Object(map)) => members(map, node.page.struct_of(id), path),
        (Shape::Struct(_), found) => Err(RestoreError::Struct { found: kind(found) }),
        (Shape::Map(_), Value::Object(map)) => {
            let item = node.item().expect("a map has values");
            let names: Vec<_> = map.keys().map(str::to_owned).collect();
            names
                .iter()
                .zip(map.values_mut())
                .try_for_each(|(name, element)| value(element, item, &path.key(name), within))
        }
        (Shape::Map(_), found) => Err(RestoreError::Container {
            into: "map",
            found: kind(found),
        }),
        (Shape::List(_) | Shape::Strings, Value::Array(items)) => {
            let item = node.item().expect("a list has items");
            items
                .iter_mut()
                .enumerate()
                .try_for_each(|(place, element)| value(element, item, &path.index(place), within))
        }
        (Shape::List(_) | Shape::Strings, found) => Err(RestoreError::Container {
            into: "slice",
            found: kind(found),
        }),
        (Shape::Bytes, Value::String(text)) => {
            let own = json::decode(&json::to_vec(&Value::String(text.clone())), Some(node));
            own.map(drop)
                .map_err(|error| RestoreError::Bytes(error.to_string()))
        }
        (Shape::Bytes, found) => Err(RestoreError::Container {
            into: "slice",
            found: kind(found),
        }),
        (Shape::String | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double, found) => {
            let named = || go_names::type_at(node, path, within);
            scalar(found, node.shape, named)
        }
        (Shape::Raw(_), _) => Ok(()),
        (_, found) => {
            let own = json::decode(&json::to_vec(found), Some(node));
            own.map(drop)
                .map_err(|error| RestoreError::Own(error.to_string()))
        }
    }
}

fn scalar(
    found: &mut Value,
    shape: Shape,
    named: impl FnOnce() -> String,
) -> Result<(), RestoreError> {
    let wanted = match shape {
        Shape::String => "string",
        Shape::Bool => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        _ => "float64",
    };

    match (shape, &*found) {
        (Shape::String, Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Int64, Value::Int(_))
        | (Shape::Double, Value::Int(_) | Value::Float(_)) => {}
        (Shape::Int32, Value::Int(number)) => *found = Value::Int(truncate(*number)),
        (Shape::Int32 | Shape::Int64, Value::Float(number)) => match whole(*number) {
            Some(whole) => {
                *found = Value::Int(if shape == Shape::Int32 {
                    truncate(whole)
                } else {
                    whole
                })
            }
            None => {
                return Err(RestoreError::Number {
                    found: "float64",
                    wanted: named(),
                });
            }
        },
        // In Go a number can be converted to a string: the character of that number.
        (Shape::String, Value::Int(_)) => {
            return Err(RestoreError::Number {
                found: "int64",
                wanted: named(),
            });
        }
        _ => return Err(RestoreError::Scalar { wanted }),
    }

    Ok(())
}

/// The lower 32 bits, with their sign.
fn truncate(number: i64) -> i64 {
    let bytes = number.to_le_bytes();
    i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn whole(number: f64) -> Option<i64> {
    // Exact: a float without a fraction is printed as an integer, and one beyond 64 bits does not
    // parse.
    (number == number.trunc())
        .then(|| format!("{number:.0}").parse().ok())
        .flatten()
}

/// Go's kind of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        Value::Raw(raw) => match raw.type_name() {
            "object" => "map",
            "array" => "slice",
            "string" => "string",
            "bool" => "bool",
            _ => "int64",
        },
    }
}
