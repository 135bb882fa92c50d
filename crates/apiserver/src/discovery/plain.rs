//! One document per path: the groups, one group, the resources of one group and version.

use coracle_api::catalog::{self, Resource, Subresource};
use coracle_api::{Map, Text, Value};

use super::served_groups::{GroupResource, ServedGroups};

/// The document at a discovery path; `None`: there is none.
pub(super) fn document(
    path: &str,
    server_address: &str,
    served_groups: &ServedGroups<'_>,
) -> Option<Value> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api"] => Some(api_versions(server_address)),
        ["apis"] => {
            let groups = served_groups
                .groups()
                .iter()
                .filter(|group| !group.name.is_empty());

            let groups: Vec<Value> = groups
                .map(|group| Value::Object(self::group(group)))
                .collect();
            Some(object(
                "APIGroupList",
                "v1",
                [("groups", Value::Array(groups))],
            ))
        }
        ["apis", name] => {
            let found = served_groups
                .groups()
                .iter()
                .find(|group| !group.name.is_empty() && group.name == *name)?;
            let mut document = group(found);
            document.insert("kind", "APIGroup");
            document.insert("apiVersion", "v1");
            Some(Value::Object(document))
        }
        ["api", version] => resources("", version, served_groups),
        ["apis", group, version] => resources(group, version, served_groups),
        _ => None,
    }
}

fn api_versions(server_address: &str) -> Value {
    let mut address = Map::new();
    address.insert("clientCIDR", "0.0.0.0/0");
    address.insert("serverAddress", server_address);
    let mut document = Map::new();
    document.insert("kind", "APIVersions");
    document.insert("versions", vec![Value::string("v1")]);
    document.insert("serverAddressByClientCIDRs", vec![Value::Object(address)]);
    Value::Object(document)
}

fn group(group: &catalog::Group) -> Map {
    let version = |version: &Text| {
        let mut entry = Map::new();
        entry.insert("groupVersion", catalog::api_version(&group.name, version));
        entry.insert("version", version.clone());
        Value::Object(entry)
    };

    let mut document = Map::new();
    document.insert("name", group.name.clone());
    document.insert(
        "versions",
        group.versions.iter().map(version).collect::<Vec<_>>(),
    );

    document.insert("preferredVersion", version(&group.versions[0]));

    document
}

fn resources(group: &str, version: &str, served_groups: &ServedGroups<'_>) -> Option<Value> {
    let known = served_groups
        .groups()
        .iter()
        .find(|known| known.name == group)?;
    known.versions.iter().find(|known| *known == version)?;

    let list: Vec<Value> = served_groups
        .resources(group, version)
        .flat_map(|found| {
            let resource = found.resource;
            let below = resource
                .subresources
                .iter()
                .map(move |subresource| subresource_entry(resource, subresource));
            std::iter::once(resource_entry(&found)).chain(below)
        })
        .collect();

    let fields = [
        (
            "groupVersion",
            Value::String(catalog::api_version(group, version)),
        ),
        ("resources", Value::Array(list)),
    ];
    let mut document = object("APIResourceList", "v1", fields);

    // The documents of the oldest group are older than their own version.
    if group.is_empty()
        && let Some(map) = document.as_object_mut()
    {
        map.remove("apiVersion");
    }

    Some(document)
}

fn resource_entry(found: &GroupResource<'_>) -> Value {
    let resource = found.resource;
    let mut entry = Map::new();
    entry.insert("name", resource.plural.clone());
    entry.insert("singularName", resource.singular.clone());
    entry.insert("namespaced", resource.namespaced);
    entry.insert("kind", resource.kind.clone());
    entry.insert("verbs", texts(&found.verbs()));

    if !resource.short_names.is_empty() {
        entry.insert("shortNames", texts(&resource.short_names));
    }
    if !resource.categories.is_empty() {
        entry.insert("categories", texts(&resource.categories));
    }

    if let Some(storage) = resource
        .storage
        .as_ref()
        .filter(|storage| storage.hash_published)
    {
        entry.insert("storageVersionHash", storage.hash.clone());
    }

    Value::Object(entry)
}

fn subresource_entry(resource: &Resource, subresource: &Subresource) -> Value {
    let mut entry = Map::new();
    entry.insert(
        "name",
        format!("{}/{}", resource.plural, subresource.name).as_str(),
    );

    entry.insert("singularName", "");
    entry.insert("namespaced", resource.namespaced);
    entry.insert("kind", subresource.kind.clone());
    entry.insert("verbs", texts(&subresource.verbs));

    for (name, text) in [
        ("group", &subresource.group),
        ("version", &subresource.version),
    ] {
        if !text.is_empty() {
            entry.insert(name, text.clone());
        }
    }

    Value::Object(entry)
}

pub(super) fn texts(list: &[Text]) -> Vec<Value> {
    list.iter()
        .map(|text| Value::String(text.clone()))
        .collect()
}

fn object<const N: usize>(kind: &str, api_version: &str, fields: [(&str, Value); N]) -> Value {
    let mut document = Map::new();
    document.insert("kind", kind);
    document.insert("apiVersion", api_version);
    for (name, value) in fields {
        document.insert(name, value);
    }
    Value::Object(document)
}
