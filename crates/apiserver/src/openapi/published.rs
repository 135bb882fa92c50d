//! The published schemas of custom resources.
//!
//! Version 3 has the schema as it is. Version 2 has no alternatives and no null, and its readers
//! reject fields that are not listed: what it cannot express is left out, as upstream does.

use coracle_api::{Map, Value};

use super::named::Version;

/// The author's schema, with what every object has (`declared`).
pub(super) fn schema(author: &Map, mut declared: Map, version: Version) -> Map {
    let mut schema = author.clone();
    if version == Version::V2 {
        simplify(&mut schema);
    }

    let open = schema.flag(PRESERVE) && version == Version::V2;

    // The metadata of every object is the same, whatever its schema declares.
    if let Some(Value::Object(own)) = declared.remove("properties").filter(|_| !open) {
        let properties = schema.object_mut("properties");
        for (name, value) in own {
            properties.insert(name, value);
        }
    }

    schema
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

fn simplify(schema: &mut Map) {
    for name in ["allOf", "anyOf", "oneOf", "not"] {
        schema.remove(name);
    }

    if schema.flag("nullable") {
        for name in [
            "nullable",
            "type",
            "items",
            "properties",
            "required",
            "enum",
        ] {
            schema.remove(name);
        }
    }

    if schema.flag(PRESERVE) {
        schema.remove("items");
        schema.remove("properties");
    }

    if schema.flag("x-kubernetes-int-or-string") {
        schema.remove("type");
    }

    remove_nullable(schema);

    for name in ["items", "additionalProperties"] {
        if let Some(below) = schema.below_mut(name) {
            simplify(below);
        }
    }

    let properties = schema
        .below_mut("properties")
        .into_iter()
        .flat_map(Map::values_mut);

    properties
        .filter_map(Value::as_object_mut)
        .for_each(simplify);
}

/// A nullable property cannot be required.
fn remove_nullable(schema: &mut Map) {
    let nullable: Vec<String> = schema
        .below("properties")
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(_, of)| of.get("nullable") == Some(&Value::Bool(true)))
        .map(|(name, _)| name.to_owned())
        .collect();

    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| {
            !name
                .as_str()
                .is_some_and(|name| nullable.iter().any(|other| other == name))
        });
    }

    if schema.items("required").is_empty() {
        schema.remove("required");
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn version_2_omits_what_it_cannot_express() {
        let check = |version: Version, expected: &str| {
            let author = json::parse(
                br#"{"type":"object","properties":{"spec":{"type":"object","required":["a","b"],"properties":{
                    "a":{"type":"string","nullable":true},"b":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"}]},
                    "c":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"d":{"type":"string"}}}}}}}"#,
            )
            .unwrap();

            let declared = json::parse(br#"{"properties":{"kind":{"type":"string"}}}"#).unwrap();
            let found = schema(
                author.as_object().unwrap(),
                declared.as_object().unwrap().clone(),
                version,
            );
            assert_eq!(json::to_string(&Value::Object(found)), expected);
        };

        check(
            Version::V2,
            concat!(
                r#"{"properties":{"kind":{"type":"string"},"spec":{"properties":{"a":{},"b":{"x-kubernetes-int-or-string":true},"#,
                r#""c":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"required":["b"],"type":"object"}},"type":"object"}"#
            ),
        );

        check(
            Version::V3,
            concat!(
                r#"{"properties":{"kind":{"type":"string"},"spec":{"properties":{"a":{"nullable":true,"type":"string"},"#,
                r#""b":{"anyOf":[{"type":"integer"}],"x-kubernetes-int-or-string":true},"#,
                r#""c":{"properties":{"d":{"type":"string"}},"type":"object","x-kubernetes-preserve-unknown-fields":true}},"#,
                r#""required":["a","b"],"type":"object"}},"type":"object"}"#
            ),
        );
    }
}
