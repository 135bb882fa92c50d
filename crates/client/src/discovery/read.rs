//! Parses discovery documents.

use coracle_api::{Map, Text, Value};

use super::{Group, Served, ServedResource, Version};
use crate::resource::Resource;

/// An `APIGroupDiscoveryList`.
pub(super) fn aggregated(document: &Value, served: &mut Served) {
    for group in items(document, "items") {
        let name = Text::new(
            group
                .get("metadata")
                .and_then(|meta| meta.get("name")?.as_str())
                .unwrap_or_default(),
        );

        let mut read = Group {
            name: name.clone(),
            versions: Vec::new(),
        };

        for version in structs(group, "versions") {
            let version_name = Text::new(version.text("version"));
            if version.text("freshness") == "Stale" {
                let which = format!("/apis/{name}/{version_name}");
                served
                    .failed
                    .push((which, "stale GroupVersion discovery".to_string()));
                continue;
            }

            let resources = structs(version, "resources")
                .map(|map| aggregated_resource(map, &name, &version_name));
            read.versions.push(Version {
                resources: resources.collect(),
                name: version_name,
            });
        }

        served.groups.push(read);
    }
}

fn aggregated_resource(map: &Map, group: &str, version: &str) -> ServedResource {
    let kind = map
        .below("responseKind")
        .map(|kind| kind.text("kind"))
        .unwrap_or_default();

    let namespaced = map.text("scope") == "Namespaced";
    let plural = map.text("resource");
    ServedResource {
        resource: Resource::new(group, version, plural, kind, namespaced),
        singular: Text::new(map.text("singularResource")),
        short_names: texts(map, "shortNames"),
        categories: texts(map, "categories"),
        verbs: texts(map, "verbs"),
        subresources: structs(map, "subresources")
            .map(|part| Text::new(part.text("subresource")))
            .collect(),
    }
}

/// The groups of an `APIGroupList`, each with its versions, the preferred one first.
pub(super) fn groups(document: &Value) -> Vec<(Text, Vec<Text>)> {
    let read = |group: &Map| {
        let preferred = group
            .below("preferredVersion")
            .map(|version| version.text("version"));
        let mut versions: Vec<Text> = structs(group, "versions")
            .map(|version| Text::new(version.text("version")))
            .collect();
        versions.sort_by_key(|version| Some(version.as_str()) != preferred);
        (Text::new(group.text("name")), versions)
    };
    items(document, "groups").map(read).collect()
}

/// An `APIResourceList`.
pub(super) fn resources(document: &Value, group: &str, version: &str) -> Version {
    let mut read = Version {
        name: Text::new(version),
        resources: Vec::<ServedResource>::new(),
    };

    for map in items(document, "resources") {
        let name = map.text("name");
        if let Some((of, part)) = name.split_once('/') {
            if let Some(of) = read
                .resources
                .iter_mut()
                .find(|resource| resource.resource.plural == of)
            {
                of.subresources.push(Text::new(part));
            }
            continue;
        }

        read.resources.push(ServedResource {
            resource: Resource::new(
                group,
                version,
                name,
                map.text("kind"),
                map.flag("namespaced"),
            ),
            singular: Text::new(map.text("singularName")),
            short_names: texts(map, "shortNames"),
            categories: texts(map, "categories"),
            verbs: texts(map, "verbs"),
            subresources: Vec::new(),
        });
    }

    read
}

fn items<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = &'a Map> {
    let found = document
        .get(name)
        .and_then(Value::as_array)
        .unwrap_or_default();
    found.iter().filter_map(Value::as_object)
}

fn structs<'a>(map: &'a Map, name: &str) -> impl Iterator<Item = &'a Map> {
    map.items(name).iter().filter_map(Value::as_object)
}

fn texts(map: &Map, name: &str) -> Vec<Text> {
    map.items(name)
        .iter()
        .filter_map(Value::as_str)
        .map(Text::new)
        .collect()
}
