//! The published definitions of custom kinds and of their lists.
//!
//! Version 3 has the author's schema as it is. Version 2 has no alternatives and no null, and its
//! readers reject fields that are not listed: what it cannot express is left out, as upstream does.

use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::{Map, Text, Value};

use super::named::Version;
use super::schema::{describe, place, wrapped};
use crate::definitions::SELECTABLE;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// The definition of a custom kind, or of its list.
pub(super) fn definition(of: Struct<'_>, version: Version) -> Map {
    let item = of.field("items").and_then(|items| items.node().item());
    match item.and_then(|item| item.as_struct()) {
        Some(item) => list(of, item, version),
        None => object(of, version),
    }
}

fn object(of: Struct<'_>, version: Version) -> Map {
    let author = of.page.published(of.id).and_then(Value::as_object);
    let open = author.is_none_or(|author| author.flag(PRESERVE) && version == Version::V2);

    // Without properties: those who validate by them would reject all that are not listed.
    let mut schema = if open {
        Map::new()
    } else {
        author.cloned().unwrap_or_default()
    };
    schema.insert("type", "object");

    if !open {
        if version == Version::V2 {
            simplify(&mut schema);
        }
        add_embedded(&mut schema, of, version);
        let properties = schema.object_mut("properties");
        for name in ["apiVersion", "kind", "metadata"] {
            properties.insert(name, member(of, name, "core.v1.Pod", version));
        }
    }

    add_selectable(&mut schema, of);
    schema
}

fn list(of: Struct<'_>, item: Struct<'_>, version: Version) -> Map {
    let kind_of = |of: Struct<'_>| of.page.kinds_of(of.id).next().cloned();
    let (Some(kind), Some(item_kind)) = (kind_of(of), kind_of(item)) else {
        unreachable!("a list and its items are kinds of one page");
    };
    let resource =
        of.page.resources().iter().find(|resource| {
            resource.version == item_kind.version && resource.kind == item_kind.name
        });
    let plural = resource.map_or("", |resource| &resource.plural);

    let mut properties = Map::new();
    for name in ["apiVersion", "items", "kind", "metadata"] {
        let like = "core.v1.PodList";
        properties.insert(name, member(of, name, like, version));
    }
    properties.object_mut("items").insert(
        "description",
        Text::from(format!(
            "List of {plural}. More info: \
             https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
        )),
    );

    let mut schema = Map::new();
    let what = format!("{} is a list of {}", kind.name, item_kind.name);
    schema.insert("description", Text::from(what));
    schema.insert("type", "object");
    schema.insert("required", vec![Value::string("items")]);
    schema.insert("properties", properties);
    add_selectable(&mut schema, item);
    schema
}

/// A member that every object or list has, with the description it has in the type `like`.
fn member(of: Struct<'_>, name: &str, like: &str, version: Version) -> Map {
    let mut schema = match of.field(name) {
        Some(field) => place(field.node(), version),
        None => Map::new(),
    };
    let described = BUILTIN
        .type_named(like)
        .and_then(|like| Some(like.field_description(like.field(name)?)));
    describe(&mut schema, described.unwrap_or_default());
    wrapped(schema, version)
}

fn add_selectable(schema: &mut Map, of: Struct<'_>) {
    let declared = of
        .page
        .published(of.id)
        .and_then(|author| author.get(SELECTABLE));
    if let Some(declared) = declared {
        schema.insert(SELECTABLE, declared.clone());
    }
}

/// Embedded objects have a kind, and metadata like every object. `of`: the custom kind.
fn add_embedded(schema: &mut Map, of: Struct<'_>, version: Version) {
    for below in children(schema) {
        add_embedded(below, of, version);
    }
    if !schema.flag(EMBEDDED) || (schema.flag(PRESERVE) && version == Version::V2) {
        return;
    }

    let properties = schema.object_mut("properties");
    for (name, description) in EMBEDDED_DESCRIPTIONS {
        let mut member = member(of, name, "", version);
        describe(&mut member, description);
        properties.insert(name, member);
    }
    properties.insert("metadata", member(of, "metadata", "core.v1.Pod", version));

    let mut required = schema.items("required").to_vec();
    for name in ["kind", "apiVersion"] {
        if !required.contains(&Value::string(name)) {
            required.push(Value::string(name));
        }
    }
    schema.insert("required", required);
}

const EMBEDDED_DESCRIPTIONS: [(&str, &str); 2] = [
    (
        "apiVersion",
        "apiVersion defines the versioned schema of this representation of an object. More info: \
         https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    ),
    (
        "kind",
        "kind is a string value representing the type of this object. In CamelCase. More info: \
         https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    ),
];

fn simplify(schema: &mut Map) {
    let mut without = vec!["allOf", "anyOf", "oneOf", "not", "default"];
    if schema.flag("nullable") {
        without.extend(["nullable", "type", "items", "properties"]);
    }
    if schema.flag(PRESERVE) {
        without.extend(["items", "properties"]);
    }
    for name in without {
        schema.remove(name);
    }

    // kubectl cannot read an array without items, and takes an object for one without other fields.
    let unreadable = match schema.text("type") {
        "array" => schema.get("items").is_none(),
        "object" => schema.flag(PRESERVE),
        _ => schema.flag("x-kubernetes-int-or-string"),
    };
    if unreadable {
        schema.remove("type");
    }

    remove_nullable(schema);
    children(schema).into_iter().for_each(simplify);
}

/// The schemas of the properties, items and values.
fn children(schema: &mut Map) -> Vec<&mut Map> {
    let mut found = Vec::new();
    for (name, value) in schema.iter_mut() {
        match (name, value.as_object_mut()) {
            ("items" | "additionalProperties", Some(below)) => found.push(below),
            ("properties", Some(below)) => {
                found.extend(below.values_mut().filter_map(Value::as_object_mut));
            }
            _ => {}
        }
    }
    found
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

    let values_are_nullable = schema
        .below("additionalProperties")
        .is_some_and(|values| values.flag("nullable"));
    if values_are_nullable || schema.items("required").is_empty() {
        schema.remove("required");
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::{PageBuilder, Resource};
    use coracle_api::codec::json;

    use super::*;

    /// The definitions of a kind whose author wrote `schema`, and of its list.
    fn definitions(schema: &str, version: Version) -> [Value; 2] {
        let mut page = PageBuilder::new();
        let root = page.custom_root(BUILTIN.type_named("meta.v1.ObjectMeta").unwrap());
        let list = page.custom_list(root, BUILTIN.type_named("meta.v1.ListMeta").unwrap());
        page.publish(root, json::parse(schema.as_bytes()).unwrap());
        page.add_kind("example.com", "v1", "Widget", root);
        page.add_kind("example.com", "v1", "WidgetList", list);
        page.add_resource(Resource {
            version: Text::new("v1"),
            plural: Text::new("widgets"),
            kind: Text::new("Widget"),
            ..BUILTIN.resource("", "v1", "pods").unwrap().clone()
        });

        let page = page.finish();
        [root, list].map(|id| Value::Object(definition(page.struct_of(id), version)))
    }

    fn parsed(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn version_2_omits_what_it_cannot_express() {
        const AUTHOR: &str = r#"{"type":"object","properties":{"spec":{"type":"object","required":["a","b"],"properties":{
            "a":{"type":"string","nullable":true},"b":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"}]},
            "c":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"d":{"type":"string"}}},
            "e":{"type":"string","default":"x"}}}}}"#;
        let check = |version, expected: &str| {
            let [object, _] = definitions(AUTHOR, version);
            let spec = object.at(&["properties", "spec"]).unwrap();
            assert_eq!(*spec, parsed(expected), "{version:?}");
        };

        check(
            Version::V2,
            r#"{"type":"object","required":["b"],"properties":{"a":{},"b":{"x-kubernetes-int-or-string":true},
                "c":{"x-kubernetes-preserve-unknown-fields":true},"e":{"type":"string"}}}"#,
        );
        let whole = parsed(AUTHOR);
        let whole = whole.at(&["properties", "spec"]).unwrap();
        check(Version::V3, &json::to_string(whole));
    }

    #[test]
    fn objects_and_lists_have_the_members_of_all_with_their_descriptions() {
        for version in [Version::V2, Version::V3] {
            let author =
                r#"{"type":"object","x-kubernetes-selectable-fields":[{"fieldPath":"spec.a"}]}"#;
            let [object, list] = definitions(author, version);
            let check = |of: &Value, path: &[&str], expected: &str| {
                let found = of.at(path).and_then(Value::as_str).unwrap_or_default();
                assert!(
                    found.starts_with(expected),
                    "{version:?} {path:?}: {found:?}"
                );
            };

            check(
                &object,
                &["properties", "apiVersion", "description"],
                "APIVersion defines the versioned schema",
            );
            check(
                &object,
                &["properties", "kind", "description"],
                "Kind is a string value representing",
            );
            check(
                &object,
                &["properties", "metadata", "description"],
                "Standard object's metadata. More info",
            );
            check(&list, &["description"], "WidgetList is a list of Widget");
            check(
                &list,
                &["properties", "items", "description"],
                "List of widgets. More info: https://",
            );
            check(
                &list,
                &["properties", "metadata", "description"],
                "What holds for the list",
            );
            assert_eq!(list.get("required"), Some(&parsed(r#"["items"]"#)));
            for of in [&object, &list] {
                assert_eq!(
                    of.get(SELECTABLE),
                    Some(&parsed(r#"[{"fieldPath":"spec.a"}]"#))
                );
            }
        }
    }

    #[test]
    fn an_object_that_keeps_unknown_fields_has_no_properties_in_version_2() {
        let author =
            r#"{"description":"any","type":"object","x-kubernetes-preserve-unknown-fields":true}"#;
        let [open, _] = definitions(author, Version::V2);
        assert_eq!(open, parsed(r#"{"type":"object"}"#));

        let [described, _] = definitions(author, Version::V3);
        assert_eq!(described.get("description"), Some(&"any".into()));
        assert_eq!(described.get(PRESERVE), Some(&Value::Bool(true)));
        assert!(described.at(&["properties", "kind"]).is_some());
    }

    #[test]
    fn an_embedded_object_has_a_kind_and_metadata() {
        let check = |preserve: &str, version, expected: bool| {
            let author = format!(
                r#"{{"type":"object","properties":{{"pod":{{"type":"object",{preserve}"x-kubernetes-embedded-resource":true}}}}}}"#
            );
            let [object, _] = definitions(&author, version);
            let pod = object.at(&["properties", "pod"]).unwrap();
            assert_eq!(
                pod.at(&["properties", "metadata"]).is_some(),
                expected,
                "{version:?} {preserve}"
            );
            let required = expected.then(|| parsed(r#"["kind","apiVersion"]"#));
            assert_eq!(
                pod.get("required"),
                required.as_ref(),
                "{version:?} {preserve}"
            );
        };

        let preserve = r#""x-kubernetes-preserve-unknown-fields":true,"#;
        check("", Version::V2, true);
        check(preserve, Version::V2, false);
        check("", Version::V3, true);
        check(preserve, Version::V3, true);
    }
}
