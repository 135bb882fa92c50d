//! Resources that show the same objects: other versions, and other groups.

use std::collections::HashMap;
use std::sync::LazyLock;

use coracle_api::catalog::{BUILTIN, Kind, Resource, Subresource, groups};

use super::Match;
use crate::admission::Attributes;
use crate::definitions::Compiled;

/// The resources that show the objects of a request, in upstream's order: its own is among them.
/// Only those that have the subresource.
pub fn all<'a>(attributes: &Attributes<'a>) -> Vec<Match<'a>> {
    match attributes.definition {
        Some(definition) => of_definition(definition, attributes.subresource),
        None => of_builtin(attributes),
    }
}

fn of_definition<'a>(definition: &'a Compiled, subresource: &str) -> Vec<Match<'a>> {
    let versions = 0..definition.versions.len();
    let shown = versions.filter_map(|version| {
        let resource = definition.resource(version);
        let kind = match subresource {
            "" => definition.kind(version),
            name => match with_subresource(resource, name)? {
                own if own.kind == resource.kind => definition.kind(version),
                other => kind_of(resource, other)?,
            },
        };
        Some(Match { resource, kind })
    });
    shown.collect()
}

fn of_builtin(attributes: &Attributes<'_>) -> Vec<Match<'static>> {
    let cluster = attributes.cx.cluster;
    let same = BY_STORAGE
        .get(shared(attributes.cx.resource))
        .map_or(&[][..], Vec::as_slice);
    let served = same.iter().filter(|resource| cluster.serves(resource));
    let shown = served.filter_map(|resource| {
        let kind = match attributes.subresource {
            "" => BUILTIN.kind(&resource.group, &resource.version, &resource.kind)?,
            name => kind_of(resource, with_subresource(resource, name)?)?,
        };
        Some(Match { resource, kind })
    });
    shown.collect()
}

fn with_subresource<'a>(resource: &'a Resource, name: &str) -> Option<&'a Subresource> {
    resource
        .subresources
        .iter()
        .find(|subresource| subresource.name == name)
}

fn kind_of(resource: &Resource, subresource: &Subresource) -> Option<&'static Kind> {
    let own = |theirs: &'_ str, own: &'_ str| match theirs {
        "" => own.to_owned(),
        theirs => theirs.to_owned(),
    };
    BUILTIN.kind(
        &own(&subresource.group, &resource.group),
        &own(&subresource.version, &resource.version),
        &subresource.kind,
    )
}

/// What resources that show the same objects have in common. Of those that are not stored, upstream
/// compares the name alone.
fn shared(resource: &Resource) -> &str {
    match &resource.storage {
        Some(storage) => &storage.prefix,
        None => &resource.plural,
    }
}

/// In the order in which upstream installs groups and versions.
static BY_STORAGE: LazyLock<HashMap<&str, Vec<&Resource>>> = LazyLock::new(|| {
    let place = |resource: &Resource| {
        let group = groups()
            .iter()
            .position(|group| group.name == resource.group);
        let version = group.and_then(|group| {
            let versions = &groups()[group].versions;
            versions
                .iter()
                .position(|version| *version == resource.version)
        });
        (group.unwrap_or(usize::MAX), version.unwrap_or(usize::MAX))
    };
    let mut resources: Vec<&Resource> = BUILTIN.resources().iter().collect();
    resources.sort_by_key(|resource| place(resource));

    let mut all: HashMap<&str, Vec<&Resource>> = HashMap::new();
    for resource in resources {
        all.entry(shared(resource)).or_default().push(resource);
    }
    all
});
