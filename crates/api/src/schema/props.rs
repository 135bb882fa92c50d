//! A CRD's schema as written: `JSONSchemaProps`, read from a tree.
//!
//! The tree comes from the typed decoder, so members have upstream's types; anything else (a fuzzer
//! may pass any JSON) counts as absent. Untyped JSON, a default or the values of an enum, may still
//! be raw text.

use std::borrow::Cow;

use crate::codec::json;
use crate::{Map, Text, Value};

/// One `JSONSchemaProps`.
#[derive(Clone, Copy, Debug)]
pub struct Props<'a>(&'a Map);

/// `items` or `additionalProperties`.
#[derive(Clone, Debug)]
pub(crate) enum SubSchema<'a> {
    Absent,
    One(Props<'a>),
    /// A list of schemas, which `items` may be.
    Many(Vec<Props<'a>>),
    Bool(bool),
}

impl<'a> Props<'a> {
    /// The schema in a tree; empty if it is no object.
    pub fn of(tree: &'a Value) -> Props<'a> {
        static EMPTY: Map = Map::new();
        Props(tree.as_object().unwrap_or(&EMPTY))
    }

    /// The declared type; empty if there is none.
    pub fn type_name(self) -> &'a str {
        self.text("type")
    }

    /// The properties, by name.
    pub fn properties(self) -> impl ExactSizeIterator<Item = (&'a str, Props<'a>)> {
        self.named("properties")
    }

    /// The schema of members that no property declares.
    pub fn additional_schema(self) -> Option<Props<'a>> {
        self.additional().one()
    }

    /// The schema of elements.
    pub fn items_schema(self) -> Option<Props<'a>> {
        self.items().one()
    }

    pub fn max_items(self) -> Option<i64> {
        self.int("maxItems")
    }

    pub fn max_properties(self) -> Option<i64> {
        self.int("maxProperties")
    }

    /// A member that is present and not null.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn optional_text(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    pub(crate) fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn int(self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_int)
    }

    pub(crate) fn number(self, name: &str) -> Option<f64> {
        match self.get(name)? {
            #[expect(
                clippy::cast_precision_loss,
                reason = "bounds are doubles, to upstream too"
            )]
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Untyped JSON: null counts as absent.
    pub(crate) fn json(self, name: &str) -> Option<Cow<'a, Value>> {
        Some(opened(self.get(name)?)).filter(|value| !value.is_null())
    }

    pub(crate) fn enumeration(self) -> Vec<Value> {
        self.elements("enum")
            .iter()
            .map(|value| opened(value).into_owned())
            .collect()
    }

    pub(crate) fn texts(self, name: &str) -> Vec<Text> {
        self.elements(name)
            .iter()
            .map(|value| Text::new(value.as_str().unwrap_or_default()))
            .collect()
    }

    pub(crate) fn elements(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).unwrap_or_default()
    }

    pub(crate) fn schema(self, name: &str) -> Option<Props<'a>> {
        self.get(name).map(Props::of)
    }

    pub(crate) fn schemas(self, name: &str) -> impl ExactSizeIterator<Item = Props<'a>> {
        self.elements(name).iter().map(Props::of)
    }

    /// The members of a map of schemas, by name.
    pub(crate) fn named(self, name: &str) -> impl ExactSizeIterator<Item = (&'a str, Props<'a>)> {
        static EMPTY: Map = Map::new();
        let map = self.get(name).and_then(Value::as_object).unwrap_or(&EMPTY);
        map.iter().map(|(name, value)| (name, Props::of(value)))
    }

    pub(crate) fn property(self, name: &str) -> Option<Props<'a>> {
        self.get("properties")?.get(name).map(Props::of)
    }

    pub(crate) fn items(self) -> SubSchema<'a> {
        match self.get("items") {
            Some(Value::Array(several)) => SubSchema::Many(several.iter().map(Props::of).collect()),
            Some(Value::Object(one)) => SubSchema::One(Props(one)),
            _ => SubSchema::Absent,
        }
    }

    pub(crate) fn additional(self) -> SubSchema<'a> {
        match self.get("additionalProperties") {
            Some(Value::Bool(flag)) => SubSchema::Bool(*flag),
            Some(Value::Object(one)) => SubSchema::One(Props(one)),
            _ => SubSchema::Absent,
        }
    }

    /// The members that are not zero values.
    pub(crate) fn set_members(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0.iter().filter(|(name, value)| !is_zero(name, value))
    }
}

impl<'a> SubSchema<'a> {
    pub(crate) fn one(self) -> Option<Props<'a>> {
        match self {
            SubSchema::One(props) => Some(props),
            _ => None,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, SubSchema::Absent)
    }
}

/// Raw JSON as a tree.
pub(crate) fn opened(value: &Value) -> Cow<'_, Value> {
    match value {
        // Too deep for any tree: no value of it could be validated either.
        Value::Raw(raw) => Cow::Owned(json::parse(raw.as_str().as_bytes()).unwrap_or_default()),
        other => Cow::Borrowed(other),
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

fn is_zero(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        // Where a schema is allowed, or where unset differs from `false`, `false` counts as set.
        Value::Bool(flag) => {
            !flag && !matches!(name, "additionalProperties" | "additionalItems" | PRESERVE)
        }
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // An empty schema counts as set; an empty map of schemas does not.
        Value::Object(map) => {
            map.is_empty() && matches!(name, "properties" | "patternProperties" | "definitions")
        }
        _ => false,
    }
}
