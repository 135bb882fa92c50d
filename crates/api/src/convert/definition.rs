//! CustomResourceDefinitions: served as `v1`, where each version is complete, and stored as
//! `v1beta1`, where settings that all versions share are stored once.

use super::rename;
use crate::catalog::{BUILTIN, Node, RawKind, Shape};
use crate::codec::json;
use crate::{Map, Text, Value};

/// Settings that may be per version or shared: the per-version name, and the shared name.
const SHARED: [(&str, &str); 4] = [
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("schema", "validation"),
    ("selectableFields", "selectableFields"),
    ("subresources", "subresources"),
];

pub(super) fn v1_to_v1beta1(object: &mut Map) {
    normalize_json(object);
    let Some(spec) = object.below_mut("spec") else {
        return;
    };
    let preserve = spec.flag("preserveUnknownFields");
    spec.insert("preserveUnknownFields", preserve);

    for version in spec.structs_mut("versions") {
        columns(version, "jsonPath", "JSONPath");
    }

    if let Some(first) = spec.items("versions").first() {
        let name = Text::new(first.as_object().map_or("", |first| first.text("name")));
        spec.insert("version", name);
        for (each, all) in SHARED {
            hoist(spec, each, all);
        }
    }

    let Some(conversion) = spec.below_mut("conversion") else {
        return;
    };
    if let Some(Value::Object(mut webhook)) = conversion.remove("webhook") {
        for (there, here) in [
            ("clientConfig", "webhookClientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ] {
            if let Some(value) = webhook.remove(there) {
                conversion.insert(Text::const_new(here), value);
            }
        }
    }
}

pub(super) fn v1beta1_to_v1(object: &mut Map) {
    normalize_json(object);
    let Some(spec) = object.below_mut("spec") else {
        return;
    };

    let version = spec.remove("version").unwrap_or_default();
    if spec.items("versions").is_empty() && version.as_str().is_some_and(|name| !name.is_empty()) {
        let mut only = Map::new();
        only.insert("name", version);
        only.insert("served", true);
        only.insert("storage", true);
        spec.insert("versions", vec![only.into()]);
    }

    for (each, all) in SHARED {
        if let Some(shared) = spec.remove(all).filter(|shared| !shared.is_null()) {
            for version in spec.structs_mut("versions") {
                version.insert(Text::const_new(each), shared.clone());
            }
        }
    }

    for version in spec.structs_mut("versions") {
        columns(version, "JSONPath", "jsonPath");
    }

    let Some(conversion) = spec.below_mut("conversion") else {
        return;
    };

    let mut webhook = Map::new();
    for (here, there) in [
        ("webhookClientConfig", "clientConfig"),
        ("conversionReviewVersions", "conversionReviewVersions"),
    ] {
        if let Some(value) = conversion.remove(here).filter(|value| !value.is_null()) {
            webhook.insert(Text::const_new(there), value);
        }
    }

    if !webhook.is_empty() {
        conversion.insert("webhook", webhook);
    }
}

/// Moves a setting to the top if all versions share it.
fn hoist(spec: &mut Map, each: &'static str, all: &'static str) {
    let given = |version: &Value| version.get(each).filter(|value| !is_empty(value)).cloned();
    let mut versions = spec.items("versions").iter().map(given);
    let first = versions.next().flatten();
    if !versions.all(|other| other == first) {
        return;
    }

    for version in spec.structs_mut("versions") {
        version.remove(each);
    }

    if let Some(first) = first {
        spec.insert(Text::const_new(all), first);
    }
}

/// An empty list counts as absent. An empty struct does not.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn columns(version: &mut Map, from: &str, to: &'static str) {
    for column in version.structs_mut("additionalPrinterColumns") {
        rename(column, from, to);
    }
}

/// JSON inside of schemas is decoded and encoded again: members are sorted, numbers normalized.
fn normalize_json(object: &mut Map) {
    let of = BUILTIN.kind_of(object.text("apiVersion"), "CustomResourceDefinition");
    if let Some(spec) = of.and_then(|kind| BUILTIN.root(kind).field("spec"))
        && let Some(value) = object.get_mut("spec")
    {
        normalize(value, spec.node());
    }
}

fn normalize(value: &mut Value, node: Node<'_>) {
    match (&mut *value, node.shape) {
        (Value::Raw(raw), Shape::Raw(RawKind::Json)) => {
            if let Ok(parsed) = json::parse(raw.as_str().as_bytes())
                && let Ok(written) = json::raw(&json::to_vec(&parsed))
            {
                *value = Value::Raw(written);
            }
        }
        (
            Value::Object(map),
            Shape::Struct(id)
            | Shape::SchemaOrArray(id)
            | Shape::SchemaOrBool(id)
            | Shape::SchemaOrStrings(id),
        ) => {
            let of = node.page.struct_of(id);
            for (name, value) in map.iter_mut() {
                if let Some(field) = of.field(name) {
                    normalize(value, field.node());
                }
            }
        }
        (Value::Array(items), Shape::SchemaOrArray(id)) => {
            let schema = node.page.struct_of(id).node();
            items.iter_mut().for_each(|item| normalize(item, schema));
        }
        (Value::Array(items), Shape::List(_)) => {
            let Some(item) = node.item() else { return };
            items.iter_mut().for_each(|value| normalize(value, item));
        }
        (Value::Object(map), Shape::Map(_)) => {
            let Some(item) = node.item() else { return };
            map.values_mut().for_each(|value| normalize(value, item));
        }
        _ => {}
    }
}
