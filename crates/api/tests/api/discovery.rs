//! Discovery documents, built from the catalogue and compared with the real server's.

use crate::recorded;

use std::collections::BTreeMap;
use std::path::Path;

use coracle_api::Text;
use coracle_api::catalog::{self, BUILTIN, Group, Resource, ServedApis, is_stable};
use serde_json::{Map, Value, json};

fn texts(list: &[Text]) -> Value {
    json!(list.iter().map(Text::as_str).collect::<Vec<_>>())
}

fn put_list(into: &mut Map<String, Value>, name: &str, list: &[Text]) {
    if !list.is_empty() {
        into.insert(name.to_string(), texts(list));
    }
}

/// The entries of an APIResourceList for a resource and its subresources.
fn entries(resource: &Resource) -> Vec<Value> {
    let mut own = json!({
        "name": resource.plural.as_str(),
        "singularName": resource.singular.as_str(),
        "kind": resource.kind.as_str(),
        "namespaced": resource.namespaced,
        "verbs": texts(&resource.verbs),
    });
    let fields = own.as_object_mut().unwrap();
    put_list(fields, "shortNames", &resource.short_names);

    put_list(fields, "categories", &resource.categories);

    if let Some(storage) = resource
        .storage
        .as_ref()
        .filter(|storage| storage.hash_published)
    {
        fields.insert(
            "storageVersionHash".to_string(),
            json!(storage.hash.as_str()),
        );
    }

    let below = resource.subresources.iter().map(|subresource| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "kind": subresource.kind.as_str(),
            "namespaced": resource.namespaced,
            "verbs": texts(&subresource.verbs),
        });

        for (name, text) in [
            ("group", &subresource.group),
            ("version", &subresource.version),
        ] {
            if !text.is_empty() {
                entry[name] = json!(text.as_str());
            }
        }

        entry
    });

    std::iter::once(own).chain(below).collect()
}

fn by_name(list: &Value) -> BTreeMap<String, Value> {
    let entries = list.as_array().unwrap().iter();
    entries
        .map(|entry| (entry["name"].as_str().unwrap().to_string(), entry.clone()))
        .collect()
}

#[test]
fn every_resource_of_every_group_version_comes_from_the_catalogue() {
    let folder = recorded::path("facts/discovery");
    check_resources(&folder, ServedApis::default().groups());
}

/// What a server serves whose runtime configuration is `api/all=true`, with the gates that alpha and
/// beta resources need.
#[test]
fn alpha_and_beta_resources_come_from_the_catalogue() {
    let folder = recorded::path("facts/discovery-on-request");
    let mut groups = catalog::groups().to_vec();
    for group in &mut groups {
        group
            .versions
            .to_mut()
            .retain(|version| !is_stable(version));
    }
    check_resources(&folder, &groups);
}

fn check_resources(folder: &Path, groups: &[Group]) {
    let mut documents = 0;
    for group in groups {
        for version in group.versions.iter() {
            let file = match group.name.as_str() {
                "" => format!("api-{version}.json"),
                name => format!("apis-{name}-{version}.json"),
            };

            let recorded: Value =
                serde_json::from_slice(&std::fs::read(folder.join(&file)).unwrap()).unwrap();
            let ours: Vec<Value> = BUILTIN
                .resources()
                .iter()
                .filter(|resource| resource.group == group.name && resource.version == *version)
                .flat_map(entries)
                .collect();

            assert_eq!(
                by_name(&json!(ours)),
                by_name(&recorded["resources"]),
                "{file}"
            );

            documents += 1;
        }
    }

    let recorded = recorded::files(folder, ".json");
    let group_versions = recorded.iter().filter(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.starts_with("api") && name.contains('-')
    });

    assert_eq!(
        documents,
        group_versions.count(),
        "documents of group-versions"
    );
}

#[test]
fn groups_and_their_preferred_versions_come_in_the_recorded_order() {
    let folder = recorded::path("facts/discovery");
    let recorded: Value =
        serde_json::from_slice(&std::fs::read(folder.join("apis.json")).unwrap()).unwrap();

    let ours: Vec<Value> = ServedApis::default()
        .groups()
        .iter()
        .filter(|group| !group.name.is_empty())
        .map(|group| {
            let entry = |version: &Text| {
                json!({"groupVersion": format!("{}/{version}", group.name), "version": version.as_str()})
            };
            json!({
                "name": group.name.as_str(),
                "preferredVersion": entry(&group.versions[0]),
                "versions": group.versions.iter().map(entry).collect::<Vec<_>>(),
            })
        })
        .collect();
    assert_eq!(json!(ours), recorded["groups"]);
}

#[test]
fn storage_and_columns_match_the_record() {
    let folder = recorded::path("facts");
    let storage: Value =
        serde_json::from_slice(&std::fs::read(folder.join("storage.json")).unwrap()).unwrap();
    let columns: Value =
        serde_json::from_slice(&std::fs::read(folder.join("table-columns.json")).unwrap()).unwrap();

    for recorded in storage["resources"].as_array().unwrap() {
        let text = |name: &str| recorded[name].as_str().unwrap_or_default();
        for version in recorded["served"].as_array().unwrap() {
            let version = version.as_str().unwrap();
            let resource = BUILTIN
                .resource(text("group"), version, text("resource"))
                .unwrap();
            assert_eq!(
                resource.storage.is_some(),
                recorded["stored"].as_bool().unwrap(),
                "{recorded}"
            );

            if let Some(storage) = &resource.storage {
                assert_eq!(storage.hash, text("hash"));
                assert_eq!(storage.prefix, text("prefix"));
                assert_eq!(storage.json, text("media") == "json");
                assert_eq!(
                    storage.version,
                    recorded["storage"]["version"].as_str().unwrap()
                );
            }

            let selectable: Vec<&str> = resource
                .selectable
                .iter()
                .map(|field| field.name.as_str())
                .collect();
            assert_eq!(json!(selectable), recorded["selectable"], "{recorded}");

            let rule = |name: &str| recorded[name].as_bool().unwrap_or_default();
            assert_eq!(resource.has_generation, rule("generation"), "{recorded}");
            assert_eq!(
                resource.create_on_update,
                rule("createOnUpdate"),
                "{recorded}"
            );

            assert_eq!(resource.needs_version, rule("needsVersion"), "{recorded}");
        }
    }

    for (key, recorded) in columns.as_object().unwrap() {
        let (api_version, plural) = key.split_once(' ').unwrap();
        let (group, version) = catalog::split_api_version(api_version);
        let resource = BUILTIN.resource(group, version, plural).unwrap();

        let ours: Vec<Value> = resource
            .columns
            .iter()
            .map(|column| {
                json!({
                    "name": column.name.as_str(),
                    "type": column.data_type.as_str(),
                    "format": column.format.as_str(),
                    "priority": i32::from(column.wide),
                })
            })
            .collect();
        assert_eq!(&json!(ours), recorded, "{key}");
    }
}

#[test]
fn every_field_attribute_matches_the_record() {
    let folder = recorded::path("facts");
    let facts: Value =
        serde_json::from_slice(&std::fs::read(folder.join("api-facts.json")).unwrap()).unwrap();

    let mut fields = 0;
    for (name, recorded) in facts["types"].as_object().unwrap() {
        if recorded["legacy"] == true || !recorded["scalar"].is_null() {
            continue;
        }

        let of = BUILTIN
            .type_named(name)
            .unwrap_or_else(|| panic!("no type {name}"));
        assert_eq!(
            of.declared.atomic,
            recorded["map-type"] == "atomic",
            "{name}"
        );

        let recorded_fields = recorded["fields"].as_array().unwrap();
        assert_eq!(of.fields().len(), recorded_fields.len(), "{name}");

        for recorded in recorded_fields {
            let label = format!("{name}.{}", recorded["name"].as_str().unwrap());
            let field = of
                .field(recorded["name"].as_str().unwrap())
                .unwrap_or_else(|| panic!("no field {label}"));
            let presence = field.field.presence;
            assert_eq!(presence.required(), recorded["required"] == true, "{label}");
            assert_eq!(presence.pointer(), recorded["ptr"] == true, "{label}");
            assert_eq!(presence.omit_empty(), recorded["omit"] == true, "{label}");

            let tag = match &recorded["tag"] {
                Value::Number(tag) => vec![u16::try_from(tag.as_u64().unwrap()).unwrap()],
                Value::Array(path) => path
                    .iter()
                    .map(|t| u16::try_from(t.as_u64().unwrap()).unwrap())
                    .collect(),
                _ => Vec::new(),
            };
            assert_eq!(of.tag(field.name()), tag, "{label}");

            let extra = field.extra();
            assert_eq!(
                extra.patch.merge_key.as_deref(),
                recorded["patchKey"].as_str(),
                "{label}"
            );

            assert_eq!(
                extra.patch.merge,
                recorded["patch"]
                    .as_str()
                    .unwrap_or_default()
                    .contains("merge"),
                "{label}"
            );

            let list = |name: &str| recorded.get(name).cloned().unwrap_or_else(|| json!([]));
            assert_eq!(texts(&extra.enumeration), list("enum"), "{label}");
            assert_eq!(texts(&extra.known), list("known"), "{label}");

            fields += 1;
        }
    }

    assert!(fields > 3_700, "{fields} fields compared");
}
