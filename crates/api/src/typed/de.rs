//! Deserializes a tree with serde, without text in between.

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::TypedError;
use crate::codec::json;
use crate::{Map, Value};

/// Deserializes a borrowed tree.
pub(super) struct TreeReader<'v> {
    tree: &'v Value,
    /// A member to skip.
    without: Option<&'static str>,
}

impl<'v> TreeReader<'v> {
    pub(super) fn new(tree: &'v Value) -> TreeReader<'v> {
        TreeReader {
            tree,
            without: None,
        }
    }

    pub(super) fn without(tree: &'v Value, member: &'static str) -> TreeReader<'v> {
        TreeReader {
            tree,
            without: Some(member),
        }
    }
}

impl<'de> Deserializer<'de> for TreeReader<'de> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.tree {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(TreeReader::new)))
            }
            Value::Object(map) => {
                let read = map.iter().filter(|(name, _)| self.without != Some(name));
                visitor.visit_map(MapDeserializer::new(members(read)))
            }
            Value::Raw(raw) => match json::parse(raw.as_str().as_bytes()) {
                Ok(value) => OwnedReader(value).deserialize_any(visitor),
                Err(error) => Err(serde::de::Error::custom(error)),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        if self.tree.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        match self.tree {
            Value::Object(map) if fields.contains(&TRANSITION) => {
                // Go decodes an absent time as the zero time; the type has no such default.
                let missing = map.get(TRANSITION).is_none_or(Value::is_null);
                let first =
                    missing.then_some((TRANSITION.into_deserializer(), TreeReader::new(&FIRST)));
                visitor.visit_map(MapDeserializer::new(members(map.iter()).chain(first)))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        match self.tree {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            other => Err(serde::de::Error::custom(format!(
                "expected a string, found {}",
                other.type_name()
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// The time of a condition's last change.
const TRANSITION: &str = "lastTransitionTime";
static FIRST: Value = Value::String(crate::Text::const_new("0001-01-01T00:00:00Z"));

impl<'de> IntoDeserializer<'de, TypedError> for TreeReader<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn members<'v>(
    members: impl Iterator<Item = (&'v str, &'v Value)>,
) -> impl Iterator<Item = (StrDeserializer<'v, TypedError>, TreeReader<'v>)> {
    // Null counts as absent: an unset time that is always written is null, which does not parse.
    let members = members.filter(|(_, value)| !value.is_null());
    members.map(|(name, value)| (name.into_deserializer(), TreeReader::new(value)))
}

/// The members of an object but its version; metadata without managedFields.
pub(super) fn members_of_object(
    object: &Map,
) -> impl Iterator<Item = (StrDeserializer<'_, TypedError>, TreeReader<'_>)> {
    const METADATA: &str = "metadata";

    let metadata = object.get(METADATA).filter(|metadata| !metadata.is_null());
    let metadata = metadata.map(|metadata| {
        (
            METADATA.into_deserializer(),
            TreeReader::without(metadata, "managedFields"),
        )
    });

    let others = object
        .iter()
        .filter(|(name, _)| !matches!(*name, METADATA | "apiVersion"));

    members(others).chain(metadata)
}

/// Deserializes a tree that was parsed from a raw value.
struct OwnedReader(Value);

impl<'de> Deserializer<'de> for OwnedReader {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Int(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::String(text) => visitor.visit_string(text.into_string()),
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(OwnedReader)))
            }
            Value::Object(map) => {
                let members = map
                    .into_iter()
                    .map(|(name, value)| (name.into_string(), OwnedReader(value)));
                visitor.visit_map(MapDeserializer::new(members))
            }
            Value::Raw(_) => unreachable!("parsing makes no raw values"),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any enum
    }
}

impl<'de> IntoDeserializer<'de, TypedError> for OwnedReader {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
