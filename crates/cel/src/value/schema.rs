//! Objects with a schema: members have the types that it declares, and what it does not declare
//! cannot be seen.

use coracle_api::catalog::ListType;
use coracle_api::schema::{Additional, Node, NodeId, Schema, Type, Types};
use coracle_api::time::parse_duration;
use coracle_api::{Map as Members, Value as Tree_};

use super::merged::Raw;
use super::{List, Map, Moment, Text, Tree, Value};
use crate::escape::{escape, unescape};
use crate::eval::EvalError;

/// A node of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Schemed<'a> {
    schema: &'a Schema,
    shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Node(NodeId),
    /// A node with the members that every resource has.
    Resource(NodeId),
    /// `metadata` of a resource: its name and what it is generated from.
    Metadata,
    Text,
    Nothing,
}

impl<'a> Value<'a> {
    /// A custom resource, or a part of one, with the schema of the part. The root of a resource has
    /// `apiVersion`, `kind` and `metadata`.
    pub fn with_schema(
        node: &'a Tree_,
        schema: &'a Schema,
        id: NodeId,
        is_resource: bool,
    ) -> Result<Value<'a>, EvalError> {
        let shape = if is_resource || schema.node(id).embedded {
            Shape::Resource(id)
        } else {
            Shape::Node(id)
        };
        Schemed { schema, shape }.read(node)
    }
}

fn invalid(text: impl Into<std::sync::Arc<str>>) -> EvalError {
    EvalError::Failed(text.into())
}

impl<'a> Schemed<'a> {
    fn at(self, id: NodeId) -> Schemed<'a> {
        let shape = if self.schema.node(id).embedded {
            Shape::Resource(id)
        } else {
            Shape::Node(id)
        };
        Schemed { shape, ..self }
    }

    fn node(self) -> Option<&'a Node> {
        match self.shape {
            Shape::Node(id) | Shape::Resource(id) => Some(self.schema.node(id)),
            _ => None,
        }
    }

    /// The keys that identify the elements of this list; empty for a set.
    pub(crate) fn list_type(self) -> Option<&'a ListType> {
        self.node()?.list.as_ref()
    }

    pub(crate) fn item(self) -> Schemed<'a> {
        match self.node().and_then(|node| node.items) {
            Some(id) => self.at(id),
            None => Schemed {
                shape: Shape::Nothing,
                ..self
            },
        }
    }

    /// Whether members are properties: names are escaped, and null is absent.
    fn is_object(self) -> bool {
        match self.shape {
            Shape::Metadata | Shape::Resource(_) => true,
            Shape::Node(id) => !self.schema.node(id).properties.is_empty(),
            _ => false,
        }
    }

    /// The schema of a member.
    pub(crate) fn member(self, name: &str) -> Option<Schemed<'a>> {
        let shape = |shape| Some(Schemed { shape, ..self });
        match (self.shape, name) {
            (Shape::Resource(_), "apiVersion" | "kind")
            | (Shape::Metadata, "name" | "generateName") => shape(Shape::Text),
            (Shape::Resource(_), "metadata") => shape(Shape::Metadata),
            (Shape::Node(id) | Shape::Resource(id), _) => {
                let node = self.schema.node(id);
                if self.is_object() {
                    return node.property(name).map(|property| self.at(property.node));
                }
                match node.additional {
                    Additional::Node(id) => Some(self.at(id)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn find(
        self,
        members: &'a Members,
        name: &str,
    ) -> Result<Option<Value<'a>>, EvalError> {
        let plain;
        let name = if self.is_object() {
            let Some(unescaped) = unescape(name) else {
                return Ok(None);
            };
            plain = unescaped;
            &*plain
        } else {
            name
        };

        let Some(value) = members.get(name) else {
            return Ok(None);
        };
        if self.is_object() && value.is_null() {
            return Ok(None);
        }
        match self.member(name) {
            Some(schema) => schema.read(value).map(Some),
            None => Ok(None),
        }
    }

    /// A member's name as expressions write it; none if the schema hides it.
    pub(super) fn visible_name(self, name: &'a str) -> Option<Text<'a>> {
        self.member(name)?;
        if !self.is_object() {
            return Some(Text::Borrowed(name));
        }
        Some(match escape(name) {
            Some(escaped) if escaped != name => Text::from(escaped.into_owned()),
            _ => Text::Borrowed(name),
        })
    }

    pub(crate) fn read(self, value: &'a Tree_) -> Result<Value<'a>, EvalError> {
        let node = match self.shape {
            Shape::Node(id) | Shape::Resource(id) => self.schema.node(id),
            Shape::Metadata => return self.read_object(value),
            Shape::Text => return read_text(value).map(|text| Value::String(text.into())),
            Shape::Nothing => {
                return Err(invalid(
                    "invalid array type, expected Items with a non-empty Schema",
                ));
            }
        };

        if value.is_null() {
            return if node.nullable {
                Ok(Value::Null)
            } else {
                Err(invalid(
                    "invalid data, got null for schema with nullable=false",
                ))
            };
        }
        match &node.types {
            Types::IntOrString => match value {
                Tree_::String(_) | Tree_::Int(_) => Ok(Value::of(value)),
                _ => Err(invalid(NO_INT_OR_STRING)),
            },
            Types::One(Type::Object) => self.read_object(value),
            Types::One(Type::Array) => self.read_array(node, value),
            Types::One(of) => read_scalar(*of, node, value),
            Types::Any | Types::Unknown(_) if node.preserve => Ok(Value::Opaque(value)),
            Types::Any | Types::Unknown(_) => Err(invalid(format!(
                "invalid type, expected object, array, number, integer, boolean or string, or no type with \
                 x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {}",
                node.types.name()
            ))),
        }
    }

    /// An element that was added to a list: as if it had been in the object.
    pub(super) fn read_raw(self, raw: &Raw<'a>) -> Result<Value<'a>, EvalError> {
        let value = match raw {
            Raw::Node(node) => return self.read(node),
            Raw::Value(value) => value,
        };
        let Some(node) = self.node() else {
            return Ok(value.clone());
        };

        let expected = match (&node.types, value) {
            (Types::One(Type::String), Value::String(text)) => return read_string(node, text),
            (Types::IntOrString, Value::String(_) | Value::Int(_))
            | (Types::One(Type::Number), Value::Double(_))
            | (Types::One(Type::Integer), Value::Int(_))
            | (Types::One(Type::Boolean), Value::Bool(_))
            | (Types::Any | Types::Unknown(_), _) => return Ok(value.clone()),
            (Types::One(Type::Number), Value::Int(number)) => {
                return Ok(Value::Double(*number as f64));
            }
            (Types::IntOrString, _) => return Err(invalid(NO_INT_OR_STRING)),
            (Types::One(Type::Object), _) => return Err(invalid(NO_OBJECT)),
            (Types::One(Type::Array), _) => return Err(invalid(NO_ARRAY)),
            (Types::One(Type::String), _) => "string",
            (Types::One(Type::Number), _) => "float",
            (Types::One(Type::Integer), _) => "int",
            (Types::One(Type::Boolean), _) => "bool",
        };
        Err(unexpected(expected, go_kind_of(value)))
    }

    fn read_object(self, node: &'a Tree_) -> Result<Value<'a>, EvalError> {
        if node.as_object().is_none() {
            return Err(invalid(NO_OBJECT));
        }
        let schema = Some(self);
        Ok(Value::Map(Map::Tree(Tree { node, schema })))
    }

    fn read_array(self, of: &Node, node: &'a Tree_) -> Result<Value<'a>, EvalError> {
        if node.as_array().is_none() {
            return Err(invalid(NO_ARRAY));
        }
        if of.items.is_none() {
            return Err(invalid(
                "invalid array type, expected Items with a non-empty Schema",
            ));
        }
        let schema = Some(self);
        Ok(Value::List(List::Tree(Tree { node, schema })))
    }
}

const NO_INT_OR_STRING: &str =
    "invalid data, expected XIntOrString value to be either a string or integer";
const NO_OBJECT: &str = "invalid data, expected a map for the provided schema with type=object";
const NO_ARRAY: &str = "invalid data, expected an array for the provided schema with type=array";

fn unexpected(expected: &str, found: &str) -> EvalError {
    invalid(format!("invalid data, expected {expected}, got {found}"))
}

fn read_text(value: &Tree_) -> Result<&str, EvalError> {
    value
        .as_str()
        .ok_or_else(|| unexpected("string", go_kind(value)))
}

fn read_scalar<'a>(of: Type, node: &Node, value: &'a Tree_) -> Result<Value<'a>, EvalError> {
    let expected = match (of, value) {
        (Type::String, _) => return read_string(node, &Text::Borrowed(read_text(value)?)),
        (Type::Number, Tree_::Int(number)) => return Ok(Value::Double(*number as f64)),
        (Type::Number, Tree_::Float(number)) => return Ok(Value::Double(*number)),
        (Type::Integer, Tree_::Int(number)) => return Ok(Value::Int(*number)),
        (Type::Boolean, Tree_::Bool(flag)) => return Ok(Value::Bool(*flag)),
        (Type::Number, _) => "float",
        (Type::Integer, _) => "int",
        _ => "bool",
    };
    Err(unexpected(expected, go_kind(value)))
}

fn read_string<'a>(node: &Node, written: &Text<'a>) -> Result<Value<'a>, EvalError> {
    let text: &str = written;
    let format = node
        .checks
        .as_ref()
        .map_or("", |checks| checks.format_name.as_str());

    match format {
        "duration" => match parse_duration(text).ok().or_else(|| loose_duration(text)) {
            Some(span) => Ok(Value::Duration(span)),
            None => Err(invalid(format!(
                "Invalid duration {text}: unable to parse {text} as duration"
            ))),
        },
        "date" => Moment::parse(&format!("{text}T00:00:00Z"))
            .map(Value::Timestamp)
            .map_err(|error| invalid(format!("Invalid date formatted string {text}: {error}"))),
        "date-time" => Moment::parse(text).map(Value::Timestamp).map_err(|error| {
            invalid(format!(
                "Invalid date-time formatted string {text}: {error}"
            ))
        }),
        "byte" => match crate::base64::decode(text) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(at) => Err(invalid(format!(
                "Invalid byte formatted string {text}: illegal base64 data at input byte {at}"
            ))),
        },
        _ => Ok(Value::String(written.clone())),
    }
}

/// A duration with units of any spelling, `3 days`, as the format allows.
fn loose_duration(text: &str) -> Option<coracle_api::time::Duration> {
    const UNITS: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], 1_000_000_000),
        (&["m", "min"], 60_000_000_000),
        (&["h", "hr", "hour"], 3_600_000_000_000),
        (&["d", "day"], 86_400_000_000_000),
        (&["w", "wk", "week"], 604_800_000_000_000),
    ];

    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|next: char| next.is_ascii_digit()) {
        let behind = rest[start..].trim_start_matches(|next: char| next.is_ascii_digit());
        let digits = &rest[start..rest.len() - behind.len()];
        let word = behind.trim_start();
        rest = word.trim_start_matches(|next: char| next.is_ascii_alphabetic() || next == 'µ');
        let unit = word[..word.len() - rest.len()].to_ascii_lowercase();
        let count: i64 = digits.parse().ok()?;

        for (names, nanos) in UNITS {
            let (prefix, exact) = names.split_last()?;
            if !unit.is_empty() && (unit.starts_with(prefix) || exact.contains(&unit.as_str())) {
                total = Some(total.unwrap_or(0).wrapping_add(count.wrapping_mul(nanos)));
            }
        }
    }

    total.map(coracle_api::time::Duration::from_nanos)
}

/// Go's name of what a JSON value is decoded to.
fn go_kind(value: &Tree_) -> &'static str {
    match value {
        Tree_::Null => "<nil>",
        Tree_::Bool(_) => "bool",
        Tree_::Int(_) => "int64",
        Tree_::Float(_) => "float64",
        Tree_::String(_) | Tree_::Raw(_) => "string",
        Tree_::Array(_) => "[]interface {}",
        Tree_::Object(_) => "map[string]interface {}",
    }
}

/// Go's name of what a value of an expression is.
fn go_kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) | Value::Type(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(_) => "[]ref.Val",
        Value::Map(_) => "map[ref.Val]ref.Val",
        _ => "interface {}",
    }
}
