//! Types as schemas: what a struct of the catalogue looks like in a document.
//!
//! The versions differ in two ways: version 3 wraps a reference that has siblings in `allOf` and
//! has defaults, version 2 does neither.

use coracle_api::catalog::{
    FieldRef, ListType, MapType, Node, Patch, Presence, RawKind, Shape, Struct, Union,
};
use coracle_api::codec::json;
use coracle_api::{Map, Text, Value};

use super::named::{Named, Version};
use super::published;

pub(super) fn structure(of: Struct<'_>, version: Version) -> Map {
    if of.definition_name().is_empty() {
        return published::definition(of, version);
    }

    let mut schema = Map::new();
    describe(&mut schema, of.description());
    schema.insert("type", "object");

    let mut properties = Vec::with_capacity(of.fields().len());
    for field in of.iter() {
        let mut property = property(field, version);
        describe_field(&mut property, of.field_description(field), field);
        properties.push((
            field.field.name.clone(),
            Value::Object(wrapped(property, version)),
        ));
    }

    if !properties.is_empty() {
        schema.insert("properties", Map::from_members(properties));
    }

    let required = required(of);
    if !required.is_empty() {
        schema.insert("required", required);
    }

    if of.declared.atomic {
        schema.insert("x-kubernetes-map-type", "atomic");
    }

    if !of.unions().is_empty() {
        schema.insert(
            "x-kubernetes-unions",
            of.unions().iter().map(union).collect::<Vec<_>>(),
        );
    }

    schema
}

/// In the order in which the fields were declared, according to their protobuf tags.
fn required(of: Struct<'_>) -> Vec<Value> {
    let mut names: Vec<(Vec<u16>, &str)> = of
        .iter()
        .filter(|field| field.field.presence.required())
        .map(|field| (of.tag(field.name()), field.name()))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|(_, name)| Value::string(name))
        .collect()
}

fn union(union: &Union) -> Value {
    let mut value = Map::new();
    if let Some(discriminator) = &union.discriminator {
        value.insert("discriminator", discriminator.clone());
    }

    let members = union
        .members
        .iter()
        .map(|(field, value)| (field.clone(), Value::String(value.clone())));

    value.insert(
        "fields-to-discriminateBy",
        Map::from_members(members.collect()),
    );

    Value::Object(value)
}

/// A field's schema, without its description.
fn property(field: FieldRef<'_>, version: Version) -> Map {
    let extra = field.extra();
    let node = field.node();

    let mut schema = place(node, version);
    if version == Version::V3 {
        let default = match &extra.published_default {
            Some(text) => json::parse(text.as_bytes()).ok(),
            None => zero(node.shape, field.field.presence),
        };
        if let Some(default) = default {
            schema.insert("default", default);
        }
    }

    if !extra.enumeration.is_empty() {
        let values: Vec<Value> = extra
            .enumeration
            .iter()
            .cloned()
            .map(Value::String)
            .collect();

        // The values of a list or map have them, not the list.
        let below = match node.shape {
            Shape::List(_) => Some("items"),
            Shape::Map(_) => Some("additionalProperties"),
            _ => None,
        };

        match below {
            Some(below) => schema.object_mut(below).insert("enum", values),
            None => schema.insert("enum", values),
        };
    }

    marks(&mut schema, extra.list.as_ref(), extra.map, &extra.patch);

    schema
}

/// How server-side apply and strategic merge treat it.
fn marks(schema: &mut Map, list: Option<&ListType>, map: Option<MapType>, patch: &Patch) {
    if let Some(list) = list {
        let name = match list {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map(keys) => {
                let keys: Vec<Value> = keys.iter().cloned().map(Value::String).collect();
                schema.insert("x-kubernetes-list-map-keys", keys);
                "map"
            }
        };
        schema.insert("x-kubernetes-list-type", name);
    }

    if let Some(map) = map {
        let name = if map == MapType::Atomic {
            "atomic"
        } else {
            "granular"
        };
        schema.insert("x-kubernetes-map-type", name);
    }

    let strategies = [
        (patch.merge, "merge"),
        (patch.replace, "replace"),
        (patch.retain_keys, "retainKeys"),
    ];

    let strategies: Vec<&str> = strategies
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| *name)
        .collect();

    if !strategies.is_empty() {
        schema.insert("x-kubernetes-patch-strategy", strategies.join(",").as_str());
    }

    if let Some(key) = &patch.merge_key {
        schema.insert("x-kubernetes-patch-merge-key", key.clone());
    }
}

/// The schema of a value: a reference where its type has a name.
pub(super) fn place(node: Node<'_>, version: Version) -> Map {
    let mut schema = Map::new();
    if let Some(named) = Named::at(node) {
        schema.insert("$ref", version.reference(&named.name()));
        return schema;
    }

    match node.shape {
        Shape::List(_) | Shape::Strings => {
            schema.insert("type", "array");
            schema.insert("items", element(node, version));
        }
        Shape::Map(_) => {
            schema.insert("type", "object");
            schema.insert("additionalProperties", element(node, version));
        }
        shape => schema = scalar(shape, version),
    }

    schema
}

/// The schema of the elements of a list or map.
fn element(node: Node<'_>, version: Version) -> Map {
    let item = node.item().expect("lists and maps have items");
    let mut schema = place(item, version);
    if version == Version::V3
        && let Some(zero) = zero(item.shape, Presence::default())
    {
        schema.insert("default", zero);
    }
    wrapped(schema, version)
}

/// A reference has no siblings: in version 3, they move it into `allOf`.
pub(super) fn wrapped(mut schema: Map, version: Version) -> Map {
    if version == Version::V3
        && schema.len() > 1
        && let Some(target) = schema.remove("$ref")
    {
        let mut reference = Map::new();
        reference.insert("$ref", target);
        schema.insert("allOf", vec![Value::Object(reference)]);
    }
    schema
}

/// The zero value of a field that is always present.
fn zero(shape: Shape, presence: Presence) -> Option<Value> {
    if presence.pointer() {
        return None;
    }

    // Structs are always written, even where they are left out when empty.
    match shape {
        Shape::Struct(_) => Some(Value::object()),
        _ if presence.omit_empty() => None,
        Shape::String => Some(Value::string("")),
        Shape::Bool => Some(Value::Bool(false)),
        Shape::Int32 | Shape::Int64 | Shape::Double => Some(Value::Int(0)),
        _ => None,
    }
}

/// A scalar's type and format.
pub(super) fn scalar(shape: Shape, version: Version) -> Map {
    let mut schema = Map::new();
    let (name, format) = match shape {
        Shape::String | Shape::Duration => ("string", ""),
        Shape::Bytes => ("string", "byte"),
        Shape::Bool => ("boolean", ""),
        Shape::Int32 => ("integer", "int32"),
        Shape::Int64 => ("integer", "int64"),
        Shape::Double => ("number", "double"),
        Shape::Time | Shape::MicroTime => ("string", "date-time"),
        Shape::Quantity => match version {
            Version::V2 => ("string", ""),
            Version::V3 => return one_of(["string", "number"], ""),
        },
        Shape::IntOrString => match version {
            Version::V2 => ("string", "int-or-string"),
            Version::V3 => return one_of(["integer", "string"], "int-or-string"),
        },
        Shape::Raw(RawKind::RawExtension | RawKind::FieldsV1) => ("object", ""),
        // Any JSON at all: a schema without a type.
        _ => return schema,
    };
    schema.insert("type", name);

    if !format.is_empty() {
        schema.insert("format", format);
    }

    schema
}

fn one_of(types: [&'static str; 2], format: &'static str) -> Map {
    let mut schema = Map::new();
    if !format.is_empty() {
        schema.insert("format", format);
    }
    let alternative = |name: &str| {
        let mut schema = Map::new();
        schema.insert("type", name);
        Value::Object(schema)
    };
    schema.insert("oneOf", types.map(alternative).to_vec());
    schema
}

pub(super) fn describe(schema: &mut Map, text: &'static str) {
    if !text.is_empty() {
        schema.insert("description", Text::const_new(text));
    }
}

/// A field's description, with the values of an enum, for readers that only see descriptions.
fn describe_field(schema: &mut Map, text: &'static str, field: FieldRef<'_>) {
    let values = &field.extra().enumeration;
    if values.is_empty() {
        return describe(schema, text);
    }

    let mut description = Text::new(text);
    if !description.is_empty() {
        description.push_str("\n\n");
    }

    description.push_str("Possible enum values:");

    for value in values.iter() {
        description.push_str("\n - `\"");
        description.push_str(value);
        description.push_str("\"`");
    }

    schema.insert("description", description);
}
