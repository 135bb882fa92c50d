//! Everything below `/api` or `/apis` in one document.

use coracle_api::catalog::{Group, Subresource};
use coracle_api::{Map, Text, Value};

use super::plain::texts;
use super::served_groups::{GroupResource, ServedGroups};

/// The document at that path; `None`: there is none.
pub(super) fn document(path: &str, served_groups: &ServedGroups<'_>) -> Option<Value> {
    let core = match path.trim_matches('/') {
        "api" => true,
        "apis" => false,
        _ => return None,
    };

    let groups = served_groups
        .groups()
        .iter()
        .filter(|group| group.name.is_empty() == core);

    let mut document = Map::new();
    document.insert("kind", "APIGroupDiscoveryList");
    document.insert("apiVersion", "apidiscovery.k8s.io/v2");

    document.insert("metadata", Value::object());
    document.insert(
        "items",
        groups
            .map(|known| group(known, served_groups))
            .collect::<Vec<_>>(),
    );

    Some(Value::Object(document))
}

fn group(group: &Group, served_groups: &ServedGroups<'_>) -> Value {
    let mut metadata = Map::new();
    if !group.name.is_empty() {
        metadata.insert("name", group.name.clone());
    }

    let mut entry = Map::new();
    entry.insert("metadata", metadata);

    let versions = group
        .versions
        .iter()
        .map(|name| version(&group.name, name, served_groups));
    entry.insert("versions", versions.collect::<Vec<_>>());

    Value::Object(entry)
}

fn version(group: &str, version: &Text, served_groups: &ServedGroups<'_>) -> Value {
    let (resources, freshness) = match served_groups.described(group, version) {
        None => {
            let resources = served_groups.resources(group, version);
            (resources.map(|found| resource(&found)).collect(), "Current")
        }
        Some(described) => match described.and_then(|described| described.resources.clone()) {
            Some(resources) => (resources, "Current"),
            None => (Vec::new(), "Stale"),
        },
    };
    let mut entry = Map::new();
    entry.insert("version", version.clone());
    if !resources.is_empty() {
        entry.insert("resources", resources);
    }
    entry.insert("freshness", freshness);
    Value::Object(entry)
}

fn resource(found: &GroupResource<'_>) -> Value {
    let resource = found.resource;
    let mut entry = Map::new();
    entry.insert("resource", resource.plural.clone());

    // Group and version are those around it, so they are left empty.
    entry.insert("responseKind", kind("", "", &resource.kind));
    entry.insert(
        "scope",
        if resource.namespaced {
            "Namespaced"
        } else {
            "Cluster"
        },
    );

    entry.insert("singularResource", resource.singular.clone());
    entry.insert("verbs", texts(&found.verbs()));

    for (name, list) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !list.is_empty() {
            entry.insert(name, texts(list));
        }
    }

    if !resource.subresources.is_empty() {
        entry.insert(
            "subresources",
            resource
                .subresources
                .iter()
                .map(subresource)
                .collect::<Vec<_>>(),
        );
    }

    Value::Object(entry)
}

fn subresource(subresource: &Subresource) -> Value {
    let mut entry = Map::new();
    entry.insert("subresource", subresource.name.clone());
    entry.insert(
        "responseKind",
        kind(&subresource.group, &subresource.version, &subresource.kind),
    );
    entry.insert("verbs", texts(&subresource.verbs));
    Value::Object(entry)
}

fn kind(group: &str, version: &str, kind: &str) -> Map {
    let mut entry = Map::new();
    entry.insert("group", group);
    entry.insert("version", version);
    entry.insert("kind", kind);
    entry
}
