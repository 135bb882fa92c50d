//! The page of the catalogue that a definition is: a kind and a resource for each of its versions.

use std::borrow::Cow;
use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::catalog::{
    BUILTIN, Column, Compared, Described, Page, PageBuilder, Resource, Selectable, Storage, Struct,
    Subresource,
};
use coracle_api::{Map, Text, Value};
use coracle_kinds::apiextensions::custom_resource_definition::view::Definition;
use ring::digest::{SHA256, digest};

/// In a published schema: the fields by which objects can be selected.
pub(crate) const SELECTABLE: &str = "x-kubernetes-selectable-fields";

/// In upstream's order.
static VERBS: [Text; 8] = [
    Text::const_new("delete"),
    Text::const_new("deletecollection"),
    Text::const_new("get"),
    Text::const_new("list"),
    Text::const_new("patch"),
    Text::const_new("create"),
    Text::const_new("update"),
    Text::const_new("watch"),
];

static PART_VERBS: [Text; 3] = [
    Text::const_new("get"),
    Text::const_new("patch"),
    Text::const_new("update"),
];

/// The kind by which objects are decoded and stored.
pub(super) fn of(definition: &Definition<'_>) -> Page {
    let mut page = PageBuilder::new();
    let root = page.custom_root(meta_type("ObjectMeta"));

    let names = super::accepted_names(definition);
    for version in definition.versions() {
        page.add_kind(
            definition.spec.text("group"),
            version.text("name"),
            names.text("kind"),
            root,
        );
        page.add_resource(resource(definition, version, names));
    }

    page.finish()
}

/// What documents show: the versions that are served, each with its schema.
pub(super) fn documented(
    definition: &Definition<'_>,
    schema: impl Fn(&str) -> Option<Value>,
) -> Page {
    let mut page = PageBuilder::new();
    let names = super::accepted_names(definition);

    let group = definition.spec.text("group");
    for version in definition
        .versions()
        .filter(|version| version.flag("served"))
    {
        let name = version.text("name");
        let root = page.custom_root(meta_type("ObjectMeta"));
        if let Some(mut schema) = schema(name) {
            publish_selectable(definition, version, &mut schema);
            page.publish(root, schema);
        }

        let list = page.custom_list(root, meta_type("ListMeta"));
        page.add_kind(group, name, names.text("kind"), root);
        page.add_kind(group, name, names.text("listKind"), list);
        page.add_resource(resource(definition, version, names));
    }

    page.finish()
}

fn publish_selectable(definition: &Definition<'_>, version: &Map, schema: &mut Value) {
    let fields: Vec<Value> = definition
        .selectable(version)
        .map(|path| {
            let mut field = Map::new();
            field.insert("fieldPath", path.trim_start_matches('.'));
            Value::Object(field)
        })
        .collect();
    if let (false, Some(schema)) = (fields.is_empty(), schema.as_object_mut()) {
        schema.insert(SELECTABLE, fields);
    }
}

fn meta_type(name: &str) -> Struct<'static> {
    BUILTIN
        .type_named(&format!("meta.v1.{name}"))
        .expect("the catalogue has what every object has")
}

fn resource(definition: &Definition<'_>, version: &Map, names: &Map) -> Resource {
    let (group, plural) = (definition.spec.text("group"), names.text("plural"));
    let kept = definition.storage_version().unwrap_or_default();
    Resource {
        group: Text::new(group),
        version: Text::new(version.text("name")),
        plural: Text::new(plural),
        singular: Text::new(names.text("singular")),
        kind: Text::new(names.text("kind")),
        short_names: Cow::Owned(texts(names, "shortNames")),
        categories: Cow::Owned(texts(names, "categories")),
        namespaced: definition.is_namespaced(),
        verbs: Cow::Borrowed(&VERBS),
        subresources: Cow::Owned(subresources(definition, version, names)),
        storage: Some(Storage {
            group: Text::new(group),
            version: Text::new(kept),
            prefix: Text::new(format!("{group}/{plural}")),
            json: true,
            hash: hash(group, kept, names.text("kind")),
            hash_published: true,
        }),
        selectable: Cow::Owned(selectable(definition, version)),
        columns: Cow::Owned(columns(definition.columns(version))),
        defaults: Cow::Borrowed(&[]),
        gate: None,
        deprecated: None,
        has_generation: true,
        create_on_update: false,
        needs_version: true,
        returns_deleted: false,
    }
}

fn texts(map: &Map, name: &str) -> Vec<Text> {
    map.items(name)
        .iter()
        .filter_map(Value::as_str)
        .map(Text::new)
        .collect()
}

fn subresources(definition: &Definition<'_>, version: &Map, names: &Map) -> Vec<Subresource> {
    let Some(declared) = definition.subresources(version) else {
        return Vec::new();
    };
    let own =
        |name: &'static str, group: &'static str, version: &'static str, kind: Text| Subresource {
            name: Text::const_new(name),
            group: Text::const_new(group),
            version: Text::const_new(version),
            kind,
            verbs: Cow::Borrowed(&PART_VERBS),
            has_table: true,
        };

    let mut found = Vec::new();
    if declared.is_set("status") {
        found.push(own("status", "", "", Text::new(names.text("kind"))));
    }
    if declared.is_set("scale") {
        found.push(own("scale", "autoscaling", "v1", Text::const_new("Scale")));
    }

    found
}

/// The selectable fields. The stored object is compared, whatever the requested version: the
/// storage version has the fields of all.
fn selectable(definition: &Definition<'_>, version: &Map) -> Vec<Selectable> {
    let mut names: BTreeSet<&str> = match version.flag("storage") {
        true => definition
            .versions()
            .flat_map(|version| definition.selectable(version))
            .collect(),
        false => definition.selectable(version).collect(),
    };
    names.insert("metadata.name");

    if definition.is_namespaced() {
        names.insert("metadata.namespace");
    }

    let field = |name: &str| Selectable {
        name: Text::new(name.trim_start_matches('.')),
        compared: Compared::Itself,
    };

    names.into_iter().map(field).collect()
}

fn columns(declared: &[Value]) -> Vec<Column> {
    let column = |name: &str, data_type: &str, format: &str, described: Described| Column {
        name: Text::new(name),
        data_type: Text::new(data_type),
        format: Text::new(format),
        wide: false,
        described,
    };

    let of_field = |path: &'static str| Described::Field(Text::const_new(path));
    let mut columns = vec![column("Name", "string", "name", of_field("metadata.name"))];
    if declared.is_empty() {
        columns.push(column(
            "Age",
            "date",
            "",
            of_field("metadata.creationTimestamp"),
        ));
    }

    columns.extend(declared.iter().filter_map(Value::as_object).map(|given| {
        let path = given.text("JSONPath");
        let described = match given.text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            words => words.to_owned(),
        };
        let described = Described::Words(Text::new(described));

        let wide = given.int("priority") > 0;
        Column {
            wide,
            ..column(
                given.text("name"),
                given.text("type"),
                given.text("format"),
                described,
            )
        }
    }));

    columns
}

/// By which clients notice that the storage version has changed.
fn hash(group: &str, version: &str, kind: &str) -> Text {
    let name = format!("{group}/{version}/{kind}");
    Text::new(STANDARD.encode(&digest(&SHA256, name.as_bytes()).as_ref()[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_upstreams() {
        assert_eq!(hash("life.g.example.com", "v1", "Widget"), "cl/XBvZkghQ=");
        assert_eq!(hash("subs.g.example.com", "v1", "Scaler"), "/BMAYPOZXc0=");
    }
}
