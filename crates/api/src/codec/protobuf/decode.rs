//! Protobuf bytes to a tree, field by field as the catalogue says.
//!
//! The wire tells a field's number; the type's wires tell which field that is, through messages that JSON does not show.
//! What comes out is in canonical form (`codec::canonical`): zeros that JSON omits are not there. Fields that no type
//! knows are passed over, as upstream does.

use super::wire::{Payload, Reader, WireError};
use super::{ProtobufError, Where};
use crate::catalog::{Field, Node, RawKind, Shape, Span, Struct, Wire, WireTo};
use crate::codec::canonical::{canonicalize, when_unset, zero};
use crate::codec::json::{self, MAX_TREE_DEPTH};
use crate::fuzz::steps;
use crate::time::{Duration, MicroTime, Time, Timestamp};
use crate::value::text_of;
use crate::{Map, Path, Text, Value};

/// Decodes one message as a struct of the catalogue.
pub fn decode_message(bytes: &[u8], of: Struct<'_>) -> Result<Value, ProtobufError> {
    Decoder { pending: Vec::with_capacity(64), depth: 0 }.top(bytes, of).map_err(|error| *error)
}

/// Boxed while it travels: a large error would make every value that is returned a large move.
type Read<T> = Result<T, Box<ProtobufError>>;

struct Decoder {
    /// Fields of the messages that are being read, the innermost last: place in the struct, and value.
    pending: Vec<(u16, Value)>,
    depth: usize,
}

/// Values are written where they belong instead of being returned, as in the JSON decoder and for the same reason.
impl Decoder {
    fn top(&mut self, bytes: &[u8], of: Struct<'_>) -> Read<Value> {
        let mut value = Value::Null;
        self.message(bytes, of, &Path::Root, &mut value)?;
        Ok(value)
    }

    fn message(&mut self, bytes: &[u8], of: Struct<'_>, path: &Path<'_>, out: &mut Value) -> Read<()> {
        self.depth += 1;
        if self.depth > MAX_TREE_DEPTH {
            return Err(Box::new(ProtobufError::TooDeep { place: path.to_string() }));
        }
        let mut reading = Reading { of, base: self.pending.len(), seen: 0 };
        self.wires(bytes, of.wires(), &mut reading, path)?;
        self.depth -= 1;
        *out = self.assemble(&reading);
        Ok(())
    }

    /// Reads the fields of a message whose numbers mean `wires`.
    fn wires(&mut self, bytes: &[u8], wires: Span, reading: &mut Reading<'_>, path: &Path<'_>) -> Read<()> {
        let rows: &[Wire] = wires.of(&reading.of.page.wires);
        let mut reader = Reader::new(bytes);
        let mut expected = 0;
        while let Some((number, payload)) = reader.next().within(path)? {
            let Some(place) = find(rows, number, expected) else { continue };
            // Lists repeat their number, so the same row is expected again.
            expected = place;
            match rows[place].to {
                WireTo::Inline(below) => self.wires(payload.bytes().within(path)?, below, reading, path)?,
                WireTo::Field(position) => self.field(payload, position, reading, path)?,
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        payload: Payload<'_>,
        position: u16,
        reading: &mut Reading<'_>,
        path: &Path<'_>,
    ) -> Read<()> {
        let field = reading.of.at(usize::from(position));
        let again = reading.seen(position);
        // Most of what is on the wire are zeros that JSON does not show: they never become values.
        if !again && is_hidden_zero(payload, field.field) {
            return Ok(());
        }
        let path = path.field(field.name());
        match field.field.shape {
            Shape::List(_) => {
                let item = field.node().item().expect("a list has items");
                // Numbers may come packed into one field.
                if let (Payload::Bytes(packed), Shape::Int32 | Shape::Int64 | Shape::Bool) =
                    (payload, item.shape)
                {
                    let mut reader = Reader::new(packed);
                    while !reader.is_empty() {
                        let number = reader.varint().within(&path)?;
                        self.append(reading, position, varint_value(number, item.shape));
                    }
                    return Ok(());
                }
                let index = if again { self.list_len(reading, position) } else { 0 };
                let mut value = Value::Null;
                self.value(payload, item, &path.index(index), &mut value)?;
                self.append(reading, position, value);
            }
            Shape::Map(_) => {
                let item = field.node().item().expect("a map has values");
                let (key, value) = self.entry(payload.bytes().within(&path)?, item, &path)?;
                self.put_entry(reading, position, key, value);
            }
            // Most fields are texts that come once: made in their place, without a stop on the way.
            Shape::String if !again => {
                let text = text_of(payload.bytes().within(&path)?);
                self.pending.push((position, Value::String(text)));
            }
            _ => {
                let mut value = Value::Null;
                self.value(payload, field.node(), &path, &mut value)?;
                // The last of several wins.
                match if again { self.slot(reading, position) } else { None } {
                    Some(slot) => *slot = value,
                    None => self.pending.push((position, value)),
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, bytes: &[u8], item: Node<'_>, path: &Path<'_>) -> Read<(Text, Value)> {
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

    fn value(&mut self, payload: Payload<'_>, node: Node<'_>, path: &Path<'_>, out: &mut Value) -> Read<()> {
        *out = match node.shape {
            Shape::String => Value::String(text_of(payload.bytes().within(path)?)),
            Shape::Bool | Shape::Int32 | Shape::Int64 => {
                varint_value(payload.varint().within(path)?, node.shape)
            }
            Shape::Double => Value::Float(finite(f64::from_bits(payload.fixed64().within(path)?))),
            Shape::Struct(id) => {
                return self.message(payload.bytes().within(path)?, node.page.struct_of(id), path, out);
            }
            _ => return self.wrapped(payload.bytes().within(path)?, node, path, out),
        };
        Ok(())
    }

    /// A value that has a form of its own on the wire.
    fn wrapped(&mut self, bytes: &[u8], node: Node<'_>, path: &Path<'_>, out: &mut Value) -> Read<()> {
        *out = match node.shape {
            Shape::Bytes => Value::string(base64_text(bytes)),
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

    /// A message that holds one of two things: field 1 or field 2.
    fn schema_or(&mut self, bytes: &[u8], node: Node<'_>, path: &Path<'_>) -> Read<Value> {
        let (Shape::SchemaOrArray(id) | Shape::SchemaOrBool(id) | Shape::SchemaOrStrings(id)) = node.shape
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
                    self.message(payload.bytes().within(path)?, schema, path, single.insert(Value::Null))?;
                }
                (Shape::SchemaOrArray(_), 2) => {
                    let mut schema_value = Value::Null;
                    self.message(payload.bytes().within(path)?, schema, path, &mut schema_value)?;
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

    fn slot(&mut self, reading: &Reading<'_>, position: u16) -> Option<&mut Value> {
        // Repeated fields come together, so it is almost always the last; and there are never more than the type has.
        let found = self.pending[reading.base..].iter().rposition(|(at, _)| {
            steps::count(1);
            *at == position
        })?;
        Some(&mut self.pending[reading.base + found].1)
    }

    fn list_len(&mut self, reading: &Reading<'_>, position: u16) -> usize {
        self.slot(reading, position).and_then(|slot| slot.as_array()).map_or(0, <[Value]>::len)
    }

    fn append(&mut self, reading: &Reading<'_>, position: u16, value: Value) {
        match self.slot(reading, position) {
            Some(Value::Array(items)) => items.push(value),
            _ => self.pending.push((position, Value::Array(vec![value]))),
        }
    }

    fn put_entry(&mut self, reading: &Reading<'_>, position: u16, key: Text, value: Value) {
        // Collected as pairs first: a map is sorted once, when its struct is put together.
        let pair = Value::Array(vec![Value::String(key), value]);
        self.append(reading, position, pair);
    }

    /// Makes the object of the fields read.
    fn assemble(&mut self, reading: &Reading<'_>) -> Value {
        let of = reading.of;
        for place in of.always() {
            if !self.pending[reading.base..].iter().any(|(at, _)| at == place)
                && let Some(value) = absent(of, &of.fields()[usize::from(*place)])
            {
                self.pending.push((*place, value));
            }
        }
        // Places are in order of the names, so this is the order of the members.
        self.pending[reading.base..].sort_unstable_by_key(|(position, _)| *position);
        let fields = of.fields();
        let mut members = Vec::with_capacity(self.pending.len() - reading.base);
        for (position, mut value) in self.pending.drain(reading.base..) {
            let field = &fields[usize::from(position)];
            if show(&mut value, field) {
                members.push((field.name.clone(), value));
            }
        }
        Value::Object(Map::from_members(members))
    }
}

/// A message that is being read.
struct Reading<'p> {
    of: Struct<'p>,
    /// Where its fields begin among the pending ones.
    base: usize,
    /// The fields that have been met, by place; those beyond 63 share the last bit.
    seen: u64,
}

impl Reading<'_> {
    /// Whether the field may have been met before.
    fn seen(&mut self, position: u16) -> bool {
        let bit = 1u64 << position.min(63);
        let before = self.seen & bit != 0;
        self.seen |= bit;
        before
    }
}

/// A plain value that is zero and that JSON leaves out then.
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

/// Where the field with that number is among the rows.
fn find(rows: &[Wire], number: u32, expected: usize) -> Option<usize> {
    for place in [expected, expected + 1] {
        if rows.get(place).is_some_and(|wire| u32::from(wire.tag) == number) {
            return Some(place);
        }
    }
    rows.binary_search_by(|wire| u32::from(wire.tag).cmp(&number)).ok()
}

/// Gives a field that protobuf carried the form JSON shows; false: it shows nothing.
fn show(value: &mut Value, field: &Field) -> bool {
    let hidden_when_zero = field.presence.omit_empty() && !field.presence.pointer();
    match (field.shape, &mut *value) {
        (Shape::Map(_), Value::Array(pairs)) => {
            let member = |pair: Value| match pair {
                Value::Array(mut pair) if pair.len() == 2 => {
                    let value = pair.pop()?;
                    let Some(Value::String(key)) = pair.pop() else { return None };
                    Some((key, value))
                }
                _ => None,
            };
            *value = Value::Object(std::mem::take(pairs).into_iter().filter_map(member).collect());
            true
        }
        (Shape::String | Shape::Bytes, Value::String(text)) => !(hidden_when_zero && text.is_empty()),
        (Shape::Bool, Value::Bool(flag)) => *flag || !hidden_when_zero,
        (Shape::Int32 | Shape::Int64, Value::Int(number)) => *number != 0 || !hidden_when_zero,
        (Shape::Double, Value::Float(number)) => *number != 0.0 || !hidden_when_zero,
        (Shape::Time | Shape::MicroTime, Value::Null) => !field.presence.omit_zero(),
        _ => true,
    }
}

/// What JSON shows of a field that protobuf did not carry.
fn absent(of: Struct<'_>, field: &Field) -> Option<Value> {
    let mut value = when_unset(field)?;
    if !value.is_null() {
        canonicalize(&mut value, Node { page: of.page, shape: field.shape });
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

/// JSON has no word for infinity, so the tree has none.
fn finite(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number.clamp(f64::MIN, f64::MAX) }
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

/// A time that is set has its seconds written; one that is not is an empty message.
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
    Ok(Value::string(match shape {
        Shape::MicroTime => MicroTime(moment).to_string(),
        _ => Time(moment).to_string(),
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

/// The JSON text in field 1, kept as it is.
fn raw(bytes: &[u8], kind: RawKind, path: &Path<'_>) -> Read<Value> {
    debug_assert_ne!(kind, RawKind::Any, "values without a type have no protobuf form");
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
    json::raw(text)
        .map(Value::Raw)
        .map_err(|error| Box::new(ProtobufError::NotJson { place: path.to_string(), error }))
}
