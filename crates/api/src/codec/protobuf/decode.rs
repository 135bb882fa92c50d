//! Decodes protobuf bytes into a tree, driven by the catalogue.
//!
//! The wire has a field's number; the type's wires map it to the field, through messages that JSON
//! does not have. The result is in canonical form (`codec::canonical`): zeros that JSON omits are
//! absent. Unknown fields are skipped, as upstream does. Fields arrive sorted by number and are
//! stored sorted by name: those of one message are collected on a stack, and a word with a bit for
//! each records which are present.

use super::wire::{Payload, Reader, WireError};
use super::{ProtobufError, WithPath};
use crate::catalog::{Field, Node, RawKind, Shape, Span, Struct, Wire, WireTo};
use crate::codec::canonical::{canonicalize, when_unset, zero};
use crate::codec::json::{self, MAX_TREE_DEPTH};
use crate::time::{Duration, MicroTime, Time, Timestamp};
use crate::value::text_of;
use crate::{Map, Path, Text, Value};

/// Decodes one message as a struct of the catalogue.
///
/// # Errors
/// The bytes are no such message, or the type has no protobuf form, as kinds created at run time.
pub fn decode_message(bytes: &[u8], of: Struct<'_>) -> Result<Value, ProtobufError> {
    if of.declared.json_only {
        return Err(ProtobufError::NoMessage {
            path: String::new(),
            type_name: of.declared.name.to_string(),
        });
    }

    let mut value = Value::Null;
    let mut decoder = Decoder {
        pending: Vec::with_capacity(64),
        depth: 0,
    };

    decoder
        .message(bytes, of, &Path::Root, &mut value)
        .map_err(|error| *error)?;

    Ok(value)
}

/// Boxed on the way: a large error would make every returned value a large move.
type DecodeResult<T> = Result<T, Box<ProtobufError>>;

struct Decoder {
    /// Fields of the messages that are being read, the innermost last.
    pending: Vec<Pending>,
    depth: usize,
}

/// A field that is not yet part of an object.
enum Pending {
    Value(Value),
    /// The members of a map as they arrive: they are sorted once, when all are read.
    Members(Vec<(Text, Value)>),
}

/// Values are written in place instead of being returned, as in the JSON decoder and for the same
/// reason.
impl Decoder {
    fn message(
        &mut self,
        bytes: &[u8],
        of: Struct<'_>,
        path: &Path<'_>,
        out: &mut Value,
    ) -> DecodeResult<()> {
        self.depth += 1;
        if self.depth > MAX_TREE_DEPTH {
            return Err(Box::new(ProtobufError::TooDeep {
                path: path.to_string(),
            }));
        }
        let mut reading = Reading::new(of, self.pending.len());
        self.wires(bytes, of.wires(), &mut reading, path)?;
        self.depth -= 1;
        *out = self.assemble(&reading);
        Ok(())
    }

    /// Reads the fields of a message whose numbers `wires` defines.
    fn wires(
        &mut self,
        bytes: &[u8],
        wires: Span,
        reading: &mut Reading<'_>,
        path: &Path<'_>,
    ) -> DecodeResult<()> {
        let rows: &[Wire] = wires.of(&reading.of.page.wires);
        let mut reader = Reader::new(bytes);

        let mut expected = 0;
        while let Some((number, payload)) = reader.next().within(path)? {
            let Some(place) = find(rows, number, expected) else {
                continue;
            };

            // Lists repeat their number, so the same row is expected again.
            expected = place;

            match rows[place].to {
                WireTo::Inline(below) => {
                    self.wires(payload.bytes().within(path)?, below, reading, path)?
                }
                WireTo::Field(position) => {
                    self.field(payload, position, reading, (&reader, number), path)?
                }
            }
        }

        Ok(())
    }

    /// Reads one field; `ahead` is the rest of the message, and the field's number.
    fn field(
        &mut self,
        payload: Payload<'_>,
        position: u16,
        reading: &mut Reading<'_>,
        ahead: (&Reader<'_>, u32),
        path: &Path<'_>,
    ) -> DecodeResult<()> {
        let field = &reading.fields[usize::from(position)];
        let slot = reading.slot(position);

        // Most fields on the wire are zeros that JSON omits: they never become values.
        if slot.is_none() && is_hidden_zero(payload, field) {
            return Ok(());
        }

        let path = path.field(&field.name);
        let node = Node {
            page: reading.of.page,
            shape: field.shape,
        };

        match field.shape {
            Shape::List(_) => {
                let slot = slot.unwrap_or_else(|| {
                    let items = Vec::with_capacity(1 + ahead.0.repeats(ahead.1));
                    self.store(reading, position, Pending::Value(Value::Array(items)))
                });
                self.element(payload, node.item().expect("a list has items"), slot, &path)?;
            }
            Shape::Map(_) => {
                let slot = slot.unwrap_or_else(|| {
                    let members = Vec::with_capacity(1 + ahead.0.repeats(ahead.1));
                    self.store(reading, position, Pending::Members(members))
                });

                let item = node.item().expect("a map has values");
                let member = self.entry(payload.bytes().within(&path)?, item, &path)?;
                if let Pending::Members(members) = &mut self.pending[slot] {
                    members.push(member);
                }
            }
            // Fast path: most fields are strings that occur once.
            Shape::String if slot.is_none() => {
                let text = text_of(payload.bytes().within(&path)?);
                self.store(reading, position, Pending::Value(Value::String(text)));
            }
            _ => {
                let mut value = Value::Null;
                self.value(payload, node, &path, &mut value)?;
                // Of several the last wins.
                match slot {
                    Some(slot) => self.pending[slot] = Pending::Value(value),
                    None => drop(self.store(reading, position, Pending::Value(value))),
                }
            }
        }

        Ok(())
    }

    /// Stores a field that occurs for the first time. Returns its slot.
    fn store(&mut self, reading: &mut Reading<'_>, position: u16, field: Pending) -> usize {
        let slot = self.pending.len();
        self.pending.push(field);
        reading.note(position, slot);
        slot
    }

    /// Reads an element, or several packed numbers, into the list at `slot`.
    fn element(
        &mut self,
        payload: Payload<'_>,
        item: Node<'_>,
        slot: usize,
        path: &Path<'_>,
    ) -> DecodeResult<()> {
        if let (Payload::Bytes(packed), Shape::Int32 | Shape::Int64 | Shape::Bool) =
            (payload, item.shape)
        {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                let number = reader.varint().within(path)?;
                self.list(slot).push(varint_value(number, item.shape));
            }
            return Ok(());
        }

        let index = self.list(slot).len();
        let mut value = Value::Null;
        self.value(payload, item, &path.index(index), &mut value)?;
        self.list(slot).push(value);

        Ok(())
    }

    fn list(&mut self, slot: usize) -> &mut Vec<Value> {
        match &mut self.pending[slot] {
            Pending::Value(Value::Array(items)) => items,
            _ => unreachable!("a slot keeps the shape of its field"),
        }
    }

    fn entry(
        &mut self,
        bytes: &[u8],
        item: Node<'_>,
        path: &Path<'_>,
    ) -> DecodeResult<(Text, Value)> {
        let mut key = Text::default();
        let mut value = None;
        let mut reader = Reader::new(bytes);
        while let Some((number, payload)) = reader.next().within(path)? {
            match number {
                1 => key = text_of(payload.bytes().within(path)?),
                2 => self.value(payload, item, &path.key(&key), value.insert(Value::Null))?,
                _ => {}
            }
        }
        Ok((key, value.unwrap_or_else(|| canonical_zero(item))))
    }

    fn value(
        &mut self,
        payload: Payload<'_>,
        node: Node<'_>,
        path: &Path<'_>,
        out: &mut Value,
    ) -> DecodeResult<()> {
        *out = match node.shape {
            Shape::String => Value::String(text_of(payload.bytes().within(path)?)),
            Shape::Bool | Shape::Int32 | Shape::Int64 => {
                varint_value(payload.varint().within(path)?, node.shape)
            }
            Shape::Double => Value::Float(finite(f64::from_bits(payload.fixed64().within(path)?))),
            Shape::Struct(id) => {
                return self.message(
                    payload.bytes().within(path)?,
                    node.page.struct_of(id),
                    path,
                    out,
                );
            }
            _ => return self.wrapped(payload.bytes().within(path)?, node, path, out),
        };

        Ok(())
    }

    /// A value with a wire format of its own.
    fn wrapped(
        &mut self,
        bytes: &[u8],
        node: Node<'_>,
        path: &Path<'_>,
        out: &mut Value,
    ) -> DecodeResult<()> {
        *out = match node.shape {
            Shape::Bytes => Value::String(Text::from(base64_text(bytes))),
            Shape::Quantity => quantity(bytes).within(path)?,
            Shape::Time | Shape::MicroTime => timestamp(bytes, node.shape).within(path)?,
            Shape::Duration => {
                Value::string(Duration::from_nanos(first_varint(bytes).within(path)?).to_string())
            }
            Shape::IntOrString => int_or_string(bytes).within(path)?,
            Shape::Raw(kind) => raw(bytes, kind, path)?,
            Shape::Strings => strings(bytes).within(path)?,
            Shape::SchemaOrArray(_) | Shape::SchemaOrBool(_) | Shape::SchemaOrStrings(_) => {
                self.schema_or(bytes, node, path)?
            }
            _ => unreachable!(
                "lists and maps are read where their field is: the catalogue nests none in another"
            ),
        };

        Ok(())
    }

    /// A message that contains one of two alternatives: field 1 or field 2.
    fn schema_or(&mut self, bytes: &[u8], node: Node<'_>, path: &Path<'_>) -> DecodeResult<Value> {
        let (Shape::SchemaOrArray(id) | Shape::SchemaOrBool(id) | Shape::SchemaOrStrings(id)) =
            node.shape
        else {
            unreachable!("called for these shapes only")
        };
        let schema = node.page.struct_of(id);

        let (mut single, mut several, mut allows) = (None, Vec::new(), false);
        let mut reader = Reader::new(bytes);
        while let Some((number, payload)) = reader.next().within(path)? {
            match (node.shape, number) {
                (Shape::SchemaOrBool(_), 1) => allows = payload.varint().within(path)? != 0,
                (Shape::SchemaOrBool(_), 2) | (_, 1) => {
                    self.message(
                        payload.bytes().within(path)?,
                        schema,
                        path,
                        single.insert(Value::Null),
                    )?;
                }
                (Shape::SchemaOrArray(_), 2) => {
                    let mut schema_value = Value::Null;
                    self.message(
                        payload.bytes().within(path)?,
                        schema,
                        path,
                        &mut schema_value,
                    )?;
                    several.push(schema_value);
                }
                (_, 2) => several.push(Value::String(text_of(payload.bytes().within(path)?))),
                _ => {}
            }
        }

        Ok(match (single, node.shape) {
            (_, _) if !several.is_empty() => Value::Array(several),
            (Some(schema), _) => schema,
            (None, Shape::SchemaOrBool(_)) => Value::Bool(allows),
            _ => Value::Null,
        })
    }

    /// Builds the object from the fields read.
    fn assemble(&mut self, reading: &Reading<'_>) -> Value {
        let always = reading
            .of
            .always()
            .iter()
            .fold(0, |bits, place| bits | 1u64 << place);

        // Indices are sorted by name, so this is the order of the members.
        let mut left = reading.held | always;
        let mut members = Vec::with_capacity(left.count_ones() as usize);
        while left != 0 {
            let place = left.trailing_zeros();
            left &= left - 1;

            let field = &reading.fields[place as usize];
            let value = if reading.held & 1 << place == 0 {
                absent(reading.of, field)
            } else {
                let slot = reading.base + usize::from(reading.slots[place as usize]);
                present(
                    std::mem::replace(&mut self.pending[slot], Pending::Value(Value::Null)),
                    field,
                )
            };

            if let Some(value) = value {
                members.push((field.name.clone(), value));
            }
        }

        self.pending.truncate(reading.base);

        Value::Object(Map::from_sorted(members))
    }
}

/// No type with a protobuf form has more fields: so one word can record which are present.
pub(super) const MAX_FIELDS: usize = 64;

/// A message that is being read.
struct Reading<'p> {
    of: Struct<'p>,
    fields: &'p [Field],
    /// Start of its fields among the pending ones.
    base: usize,
    /// Bit set of the pending fields, by index.
    held: u64,
    /// For each of them the slot, relative to `base`.
    slots: [u8; MAX_FIELDS],
}

impl<'p> Reading<'p> {
    fn new(of: Struct<'p>, base: usize) -> Reading<'p> {
        Reading {
            of,
            fields: of.fields(),
            base,
            held: 0,
            slots: [0; MAX_FIELDS],
        }
    }

    /// The slot of a pending field.
    fn slot(&self, position: u16) -> Option<usize> {
        let held = self.held & 1 << position != 0;
        held.then(|| self.base + usize::from(self.slots[usize::from(position)]))
    }

    fn note(&mut self, position: u16, slot: usize) {
        self.held |= 1 << position;
        let behind = u8::try_from(slot - self.base).expect("no more than there are fields");
        self.slots[usize::from(position)] = behind;
    }
}

/// Whether this is a zero scalar that JSON omits.
fn is_hidden_zero(payload: Payload<'_>, field: &Field) -> bool {
    let presence = field.presence;
    presence.omit_empty()
        && !presence.pointer()
        && match (payload, field.shape) {
            (Payload::Varint(0), Shape::Bool | Shape::Int32 | Shape::Int64) => true,
            (Payload::Bytes(bytes), Shape::String | Shape::Bytes) => bytes.is_empty(),
            _ => false,
        }
}

/// The row of the field with that number.
fn find(rows: &[Wire], number: u32, expected: usize) -> Option<usize> {
    for place in [expected, expected + 1] {
        if rows
            .get(place)
            .is_some_and(|wire| u32::from(wire.tag) == number)
        {
            return Some(place);
        }
    }
    rows.binary_search_by(|wire| u32::from(wire.tag).cmp(&number))
        .ok()
}

/// The JSON value of a field that the message contains.
fn present(carried: Pending, field: &Field) -> Option<Value> {
    let value = match carried {
        Pending::Value(value) => value,
        Pending::Members(members) => return Some(Value::Object(Map::from_members(members))),
    };

    let hidden_when_zero = field.presence.omit_empty() && !field.presence.pointer();
    let is_shown = match (field.shape, &value) {
        (Shape::String | Shape::Bytes, Value::String(text)) => {
            !(hidden_when_zero && text.is_empty())
        }
        (Shape::Bool, Value::Bool(flag)) => *flag || !hidden_when_zero,
        (Shape::Int32 | Shape::Int64, Value::Int(number)) => *number != 0 || !hidden_when_zero,
        (Shape::Double, Value::Float(number)) => *number != 0.0 || !hidden_when_zero,
        (Shape::Time | Shape::MicroTime, Value::Null) => !field.presence.omit_zero(),
        _ => true,
    };

    is_shown.then_some(value)
}

/// The JSON value of a field that the message does not contain.
fn absent(of: Struct<'_>, field: &Field) -> Option<Value> {
    let mut value = when_unset(field)?;
    if !value.is_null() {
        canonicalize(
            &mut value,
            Node {
                page: of.page,
                shape: field.shape,
            },
        );
    }
    Some(value)
}

fn canonical_zero(node: Node<'_>) -> Value {
    let mut value = zero(node.shape);
    canonicalize(&mut value, node);
    value
}

fn varint_value(number: u64, shape: Shape) -> Value {
    match shape {
        Shape::Bool => Value::Bool(number != 0),
        Shape::Int32 => {
            let low = u32::try_from(number & 0xffff_ffff).expect("32 bits");
            Value::Int(i64::from(low.cast_signed()))
        }
        _ => Value::Int(number.cast_signed()),
    }
}

/// JSON has no notation for infinity, so the tree has none.
fn finite(number: f64) -> f64 {
    if number.is_nan() {
        0.0
    } else {
        number.clamp(f64::MIN, f64::MAX)
    }
}

fn base64_text(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The number in field 1.
fn first_varint(bytes: &[u8]) -> Result<i64, WireError> {
    let mut found = 0;
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            found = payload.varint()?.cast_signed();
        }
    }
    Ok(found)
}

fn quantity(bytes: &[u8]) -> Result<Value, WireError> {
    let mut text = Text::const_new("0");
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            text = text_of(payload.bytes()?);
        }
    }
    Ok(Value::String(text))
}

/// A time that is set has its seconds on the wire; one that is not is an empty message.
fn timestamp(bytes: &[u8], shape: Shape) -> Result<Value, WireError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }

    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => seconds = payload.varint()?.cast_signed(),
            2 => nanos = payload.varint()?.cast_signed(),
            _ => {}
        }
    }

    let nanos = u32::try_from(nanos.clamp(0, 999_999_999)).expect("clamped");
    let moment = Timestamp::from_unix(seconds, nanos);

    Ok(Value::String(match shape {
        Shape::MicroTime => MicroTime(moment).text(),
        _ => Time(moment).text(),
    }))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, WireError> {
    let (mut is_text, mut number, mut text) = (false, Value::Int(0), Text::default());
    let mut reader = Reader::new(bytes);
    while let Some((tag, payload)) = reader.next()? {
        match tag {
            1 => is_text = payload.varint()? == 1,
            2 => number = varint_value(payload.varint()?, Shape::Int32),
            3 => text = text_of(payload.bytes()?),
            _ => {}
        }
    }
    Ok(if is_text { Value::String(text) } else { number })
}

fn strings(bytes: &[u8]) -> Result<Value, WireError> {
    let mut items = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            items.push(Value::String(text_of(payload.bytes()?)));
        }
    }
    Ok(Value::Array(items))
}

/// The JSON text in field 1, unchanged.
fn raw(bytes: &[u8], kind: RawKind, path: &Path<'_>) -> DecodeResult<Value> {
    debug_assert_ne!(
        kind,
        RawKind::Any,
        "values without a type have no protobuf form"
    );

    let mut text: &[u8] = b"";
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next().within(path)? {
        if number == 1 {
            text = payload.bytes().within(path)?;
        }
    }

    if text.is_empty() || text == b"null" {
        return Ok(Value::Null);
    }

    json::raw(text).map(Value::Raw).map_err(|error| {
        Box::new(ProtobufError::NotJson {
            path: path.to_string(),
            error,
        })
    })
}
