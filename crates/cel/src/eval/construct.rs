//! Lists, maps and objects that expressions write.

use std::sync::Arc;

use coracle_api::time::Duration;

use super::{EvalError, Evaluator, Outcome};
use crate::library::{is_made, is_text_of_patch};
use crate::plan::{Construction, Element, Entry, is_hashable};
use crate::value::{Entries, Map, Moment, Object, Text, Value, go_type, show};

/// What making one costs.
const LIST: u64 = 10;
const MAP: u64 = 30;
const OBJECT: u64 = 40;

impl<'a> Evaluator<'a, '_> {
    pub(super) fn list(&mut self, elements: &'a [Element]) -> Outcome<'a> {
        let items = self.elements(elements);
        self.construct(LIST, items.map(Value::list))
    }

    fn elements(&mut self, elements: &'a [Element]) -> Result<Vec<Value<'a>>, EvalError> {
        self.context.work.allocate_list(elements.len())?;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.eval(&element.value)?;
            if !element.optional {
                items.push(value);
                continue;
            }
            match value {
                Value::Optional(value) => items.extend(value.map(|value| (*value).clone())),
                other => {
                    return Err(EvalError::failed(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        show(&other)
                    )));
                }
            }
        }
        Ok(items)
    }

    pub(super) fn map(&mut self, entries: &'a [Entry]) -> Outcome<'a> {
        let map = self.entries(entries);
        self.construct(MAP, map.map(|entries| Value::Map(Map::from(entries))))
    }

    fn entries(&mut self, entries: &'a [Entry]) -> Result<Entries<'a>, EvalError> {
        self.context.work.allocate_list(2 * entries.len())?;
        let mut map = Entries::default();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            if !is_hashable(&key) {
                return Err(EvalError::Internal(
                    format!("runtime error: hash of unhashable type {}", go_type(&key)).into(),
                ));
            }
            match self.unwrapped(value, entry.optional, || show(&key))? {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            }
        }
        Ok(map)
    }

    pub(super) fn object(&mut self, object: &'a Construction) -> Outcome<'a> {
        let fields = self.fields(object);
        let made = match object.name.strip_prefix("google.protobuf.") {
            Some(name) => fields.and_then(|fields| well_known(name, &fields)),
            None if !is_made(&object.name) => fields.and_then(|_| unknown(&object.name)),
            None => {
                let name = Text::Borrowed(&object.name);
                fields.map(|mut fields| {
                    let is_empty = |value: &Value<'_>| value.as_str() == Some("");
                    fields.retain(|(field, value)| {
                        !is_empty(value) || !is_text_of_patch(&name, field)
                    });
                    Value::Object(Arc::new(Object { name, fields }))
                })
            }
        };
        self.construct(OBJECT, made)
    }

    fn fields(
        &mut self,
        object: &'a Construction,
    ) -> Result<Vec<(Text<'a>, Value<'a>)>, EvalError> {
        self.context.work.allocate_list(2 * object.fields.len())?;
        let mut fields: Vec<(Text<'a>, Value<'a>)> = Vec::with_capacity(object.fields.len());
        for (name, element) in &object.fields {
            let value = self.eval(&element.value)?;
            let value = self.unwrapped(value, element.optional, || Arc::clone(name))?;
            let place = fields.binary_search_by(|(known, _)| (**known).cmp(name));
            match (place, value) {
                (Ok(at), Some(value)) => fields[at].1 = value,
                (Ok(at), None) => {
                    fields.remove(at);
                }
                (Err(at), Some(value)) => fields.insert(at, (Text::Borrowed(name), value)),
                (Err(_), None) => {}
            }
        }
        Ok(fields)
    }

    /// The value of an entry; of an optional entry what is in the optional.
    fn unwrapped(
        &self,
        value: Value<'a>,
        optional: bool,
        name: impl FnOnce() -> Arc<str>,
    ) -> Result<Option<Value<'a>>, EvalError> {
        match value {
            value if !optional => Ok(Some(value)),
            Value::Optional(value) => Ok(value.map(|value| (*value).clone())),
            other => Err(EvalError::failed(format!(
                "cannot initialize optional entry '{}' from non-optional value {}",
                name(),
                show(&other)
            ))),
        }
    }

    /// Charges what was made, also if it failed.
    fn construct(&mut self, cost: u64, made: Outcome<'a>) -> Outcome<'a> {
        if let Err(error) = &made
            && error.is_final()
        {
            return made;
        }
        self.charge(cost)?;
        made
    }
}

/// The value that a message of protocol buffers' own types is.
fn well_known<'a>(name: &str, fields: &[(Text<'a>, Value<'a>)]) -> Outcome<'a> {
    let field = |wanted: &str| fields.iter().find(|(name, _)| **name == *wanted);
    let value = |wanted: &str, zero: Value<'a>| field(wanted).map_or(zero, |(_, v)| v.clone());
    let number = |wanted: &str| match value(wanted, Value::Int(0)) {
        Value::Int(number) => number,
        _ => 0,
    };

    Ok(match name {
        "BoolValue" => value("value", Value::Bool(false)),
        "BytesValue" => value("value", Value::Bytes([].into())),
        "DoubleValue" => value("value", Value::Double(0.0)),
        "FloatValue" => match value("value", Value::Double(0.0)) {
            Value::Double(number) => Value::Double(f64::from(single(number))),
            other => other,
        },
        "Int32Value" | "Int64Value" => value("value", Value::Int(0)),
        "UInt32Value" | "UInt64Value" => value("value", Value::Uint(0)),
        "StringValue" => value("value", Value::String(Text::Borrowed(""))),
        "ListValue" => value("values", Value::list(Vec::new())),
        "Struct" => value("fields", Value::Map(Map::from(Entries::default()))),
        "Value" => fields
            .first()
            .map_or(Value::Null, |(_, value)| value.clone()),
        "Duration" => {
            let nanos = i128::from(number("seconds")) * NANOS + i128::from(number("nanos"));
            let nanos = i64::try_from(nanos).map_err(|_| EvalError::IntegerOverflow)?;
            Value::Duration(Duration::from_nanos(nanos))
        }
        "Timestamp" => {
            let nanos = i128::from(number("seconds")) * NANOS + i128::from(number("nanos"));
            Value::Timestamp(Moment {
                seconds: i64::try_from(nanos.div_euclid(NANOS)).unwrap_or(i64::MAX),
                nanos: u32::try_from(nanos.rem_euclid(NANOS)).unwrap_or(0),
                offset: 0,
            })
        }
        "Any" => {
            return Err(EvalError::failed(
                "unsupported conversion to ref.Val: (*dynamicpb.Message)",
            ));
        }
        _ => return unknown(&format!("google.protobuf.{name}")),
    })
}

fn unknown<'a>(name: &str) -> Outcome<'a> {
    Err(EvalError::failed(format!("unknown type '{name}'")))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a field of this type has single precision"
)]
fn single(number: f64) -> f32 {
    number as f32
}

const NANOS: i128 = 1_000_000_000;
