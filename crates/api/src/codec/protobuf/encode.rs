//! Encodes a tree as protobuf bytes, from the last field to the first.
//!
//! As upstream does: a scalar is written even when it is zero, a pointer when it is set, lists
//! element by element and maps sorted by key, so equal objects have equal bytes.

use super::ProtobufError;
use super::wire::{BackWriter, FIXED64};
use crate::catalog::{Node, Shape, Span, Struct, WireTo};
use crate::codec::scalar;
use crate::quantity::Quantity;
use crate::time::{self, MicroTime, Time};
use crate::{Map, Path, Value};

/// Encodes an object as the message of its type.
pub fn encode_message(value: &Value, of: Struct<'_>) -> Result<Vec<u8>, ProtobufError> {
    let mut writer = BackWriter::with_capacity(1024);
    encode_into(&mut writer, value, of)?;
    Ok(writer.finish())
}

pub(super) fn encode_into(
    writer: &mut BackWriter,
    value: &Value,
    of: Struct<'_>,
) -> Result<(), ProtobufError> {
    Encoder { out: writer }.message(value, of, &Path::Root)
}

struct Encoder<'w> {
    out: &'w mut BackWriter,
}

impl Encoder<'_> {
    fn message(
        &mut self,
        value: &Value,
        of: Struct<'_>,
        path: &Path<'_>,
    ) -> Result<(), ProtobufError> {
        const EMPTY: &Map = &Map::new();

        let map = match value {
            Value::Object(map) => map,
            Value::Null => EMPTY,
            other => return Err(type_mismatch(other, "object", path)),
        };

        if of.declared.json_only {
            return Err(ProtobufError::NoMessage {
                path: path.to_string(),
                type_name: of.declared.name.to_string(),
            });
        }

        self.wires(&Members::of(map, of), of, of.wires(), path)
    }

    fn wires(
        &mut self,
        members: &Members<'_>,
        of: Struct<'_>,
        wires: Span,
        path: &Path<'_>,
    ) -> Result<(), ProtobufError> {
        for wire in wires.of(&of.page.wires).iter().rev() {
            match wire.to {
                WireTo::Inline(below) => {
                    let end = self.out.len();
                    self.wires(members, of, below, path)?;
                    self.out.close(wire.tag, end);
                }
                WireTo::Field(position) => {
                    let field = of.at(usize::from(position));
                    let value = members.get(position);
                    if field.field.presence.pointer() && value.is_null() {
                        continue;
                    }
                    self.field(wire.tag, value, field.node(), &path.field(field.name()))?;
                }
            }
        }

        Ok(())
    }

    fn field(
        &mut self,
        tag: u16,
        value: &Value,
        node: Node<'_>,
        path: &Path<'_>,
    ) -> Result<(), ProtobufError> {
        match (node.shape, value) {
            (Shape::List(_) | Shape::Map(_) | Shape::Bytes | Shape::Strings, Value::Null) => Ok(()),
            (Shape::List(_), Value::Array(items)) => {
                let item = node.item().expect("a list has items");
                for (index, element) in items.iter().enumerate().rev() {
                    self.single(tag, element, item, &path.index(index))?;
                }
                Ok(())
            }
            (Shape::Map(_), Value::Object(map)) => {
                let item = node.item().expect("a map has values");
                for (key, element) in map.iter().rev() {
                    let end = self.out.len();
                    self.single(2, element, item, &path.key(key))?;
                    self.out.text(1, key.as_bytes());
                    self.out.close(tag, end);
                }
                Ok(())
            }
            (Shape::List(_), other) => Err(type_mismatch(other, "array", path)),
            (Shape::Map(_), other) => Err(type_mismatch(other, "object", path)),
            _ => self.single(tag, value, node, path),
        }
    }

    /// One value under a tag. Null is the zero value of the type.
    fn single(
        &mut self,
        tag: u16,
        value: &Value,
        node: Node<'_>,
        path: &Path<'_>,
    ) -> Result<(), ProtobufError> {
        match node.shape {
            Shape::String => self.out.text(tag, text(value, path)?.as_bytes()),
            Shape::Bytes => {
                let text = text(value, path)?;
                let bytes = scalar::base64(text)
                    .map_err(|at| invalid(path, &format!("base64 ends at byte {at}")))?;
                self.out.text(tag, &bytes);
            }
            Shape::Bool => match value {
                Value::Bool(flag) => self.out.number(tag, u64::from(*flag)),
                Value::Null => self.out.number(tag, 0),
                other => return Err(type_mismatch(other, "bool", path)),
            },
            Shape::Int32 | Shape::Int64 => self
                .out
                .number(tag, integer(value, node.shape, path)?.cast_unsigned()),
            Shape::Double => {
                let number = match value {
                    Value::Float(number) => *number,
                    #[expect(
                        clippy::cast_precision_loss,
                        reason = "a double is what the field holds"
                    )]
                    Value::Int(number) => *number as f64,
                    Value::Null => 0.0,
                    other => return Err(type_mismatch(other, "number", path)),
                };
                self.out.bytes(&number.to_bits().to_le_bytes());

                self.out.tag(tag, FIXED64);
            }
            _ => {
                let end = self.out.len();
                self.nested(value, node, path)?;
                self.out.close(tag, end);
            }
        }

        Ok(())
    }

    /// The content of a value that is a message.
    fn nested(
        &mut self,
        value: &Value,
        node: Node<'_>,
        path: &Path<'_>,
    ) -> Result<(), ProtobufError> {
        match node.shape {
            Shape::Struct(id) => self.message(value, node.page.struct_of(id), path)?,
            Shape::Quantity => match value {
                Value::Null => self.out.text(1, b"0"),
                value => {
                    let quantity = text(value, path)?.parse::<Quantity>();
                    let quantity = quantity.map_err(|error| invalid(path, &error.to_string()))?;
                    self.out.text(1, quantity.to_string().as_bytes());
                }
            },
            Shape::Time | Shape::MicroTime => self.timestamp(value, node.shape, path)?,
            Shape::Duration => {
                let nanos = match value {
                    Value::Null => 0,
                    value => time::parse_duration(text(value, path)?)
                        .map_err(|error| invalid(path, &error.to_string()))?
                        .as_nanos(),
                };
                self.out.number(1, nanos.cast_unsigned());
            }
            Shape::IntOrString => {
                let (kind, number, string) = match value {
                    Value::String(string) => (1, 0, string.as_str()),
                    value => (0, integer(value, Shape::Int32, path)?, ""),
                };
                self.out.text(3, string.as_bytes());
                self.out.number(2, number.cast_unsigned());
                self.out.number(1, kind);
            }
            Shape::Raw(_) => match value {
                Value::Null => {}
                Value::Raw(raw) => self.out.text(1, raw.as_str().as_bytes()),
                tree => self.out.text(1, &crate::codec::json::to_vec(tree)),
            },
            Shape::Strings => match value {
                Value::Array(items) => {
                    for (index, item) in items.iter().enumerate().rev() {
                        self.out.text(1, text(item, &path.index(index))?.as_bytes());
                    }
                }
                other => return Err(type_mismatch(other, "array", path)),
            },
            _ => self.schema_or(value, node, path)?,
        }

        Ok(())
    }

    fn schema_or(
        &mut self,
        value: &Value,
        node: Node<'_>,
        path: &Path<'_>,
    ) -> Result<(), ProtobufError> {
        let (Shape::SchemaOrArray(id) | Shape::SchemaOrBool(id) | Shape::SchemaOrStrings(id)) =
            node.shape
        else {
            unreachable!("every other shape is handled before")
        };

        let schema = node.page.struct_of(id);
        match (node.shape, value) {
            (_, Value::Null) => {}
            (Shape::SchemaOrBool(_), Value::Bool(flag)) => self.out.number(1, u64::from(*flag)),
            (Shape::SchemaOrBool(_), Value::Object(_)) => {
                self.single(2, value, schema.node(), path)?;
                // A schema implies `allows`.
                self.out.number(1, 1);
            }
            (_, Value::Object(_)) => self.single(1, value, schema.node(), path)?,
            (Shape::SchemaOrArray(_), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate().rev() {
                    self.single(2, item, schema.node(), &path.index(index))?;
                }
            }
            (Shape::SchemaOrStrings(_), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate().rev() {
                    self.out.text(2, text(item, &path.index(index))?.as_bytes());
                }
            }
            (_, other) => return Err(type_mismatch(other, "schema", path)),
        }

        Ok(())
    }

    fn timestamp(
        &mut self,
        value: &Value,
        shape: Shape,
        path: &Path<'_>,
    ) -> Result<(), ProtobufError> {
        if value.is_null() {
            return Ok(());
        }

        let text = text(value, path)?;
        let at = match shape {
            Shape::MicroTime => MicroTime::parse(text).map(|time| time.0),
            _ => Time::parse(text).map(|time| time.0.truncated_to_seconds()),
        };
        let at = at.map_err(|error| invalid(path, &error.to_string()))?;
        self.out.number(2, u64::from(at.subsec_nanos()));
        self.out.number(1, at.unix_seconds().cast_unsigned());

        Ok(())
    }
}

/// The members of an object by the index of their field in the struct: names are compared once, not
/// once per tag.
struct Members<'v> {
    near: [Option<&'v Value>; Members::NEAR],
    /// For the few structs with more fields.
    far: Vec<(u16, &'v Value)>,
}

impl<'v> Members<'v> {
    const NEAR: usize = 48;

    fn of(map: &'v Map, of: Struct<'_>) -> Members<'v> {
        let mut members = Members {
            near: [None; Members::NEAR],
            far: Vec::new(),
        };

        let mut expected = 0;
        for (name, value) in map.iter() {
            let Some(place) = of.position_from(name, expected) else {
                continue;
            };
            expected = place + 1;

            match members.near.get_mut(place) {
                Some(slot) => *slot = Some(value),
                None => members.far.push((
                    u16::try_from(place).expect("a struct has few fields"),
                    value,
                )),
            }
        }

        members
    }

    fn get(&self, place: u16) -> &'v Value {
        const NULL: &Value = &Value::Null;
        match self.near.get(usize::from(place)) {
            Some(slot) => slot.unwrap_or(NULL),
            None => self
                .far
                .iter()
                .find(|(at, _)| *at == place)
                .map_or(NULL, |(_, value)| value),
        }
    }
}

fn text<'v>(value: &'v Value, path: &Path<'_>) -> Result<&'v str, ProtobufError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(""),
        other => Err(type_mismatch(other, "string", path)),
    }
}

fn integer(value: &Value, shape: Shape, path: &Path<'_>) -> Result<i64, ProtobufError> {
    match value {
        Value::Int(number) if shape == Shape::Int32 && i32::try_from(*number).is_err() => {
            Err(invalid(path, &format!("{number} does not fit 32 bits")))
        }
        Value::Int(number) => Ok(*number),
        Value::Null => Ok(0),
        other => Err(type_mismatch(other, "integer", path)),
    }
}

fn type_mismatch(found: &Value, wanted: &'static str, path: &Path<'_>) -> ProtobufError {
    ProtobufError::WrongType {
        path: path.to_string(),
        found: found.type_name(),
        wanted,
    }
}

fn invalid(path: &Path<'_>, reason: &str) -> ProtobufError {
    ProtobufError::Invalid {
        path: path.to_string(),
        reason: reason.to_string(),
    }
}
