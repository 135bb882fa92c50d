//! The resources that a path can name: the catalogue's own, and those that definitions add at run
//! time.

use std::sync::Arc;

use coracle_api::catalog::{BUILTIN, Kind, Resource, Struct};

use crate::cache::{Caches, Custom};
use crate::definitions::Version;
use crate::storage_version::StorageVersion;

/// A resource in one version, valid for as long as this is held: a definition may change or be
/// deleted meanwhile.
#[derive(Clone)]
pub enum Served {
    BuiltIn(BuiltIn),
    /// And which of its versions.
    Custom(Arc<Custom>, usize),
}

#[derive(Clone, Copy)]
pub struct BuiltIn {
    pub resource: &'static Resource,
    /// What clients see.
    pub kind: &'static Kind,
    pub of: Struct<'static>,
    pub storage_version: StorageVersion<'static>,
}

impl BuiltIn {
    pub fn of(resource: &'static Resource) -> BuiltIn {
        let kind = BUILTIN.kind(&resource.group, &resource.version, &resource.kind);
        let kind = kind.expect("the kind of a resource is in the catalogue");
        BuiltIn {
            resource,
            kind,
            of: BUILTIN.root(kind),
            storage_version: StorageVersion::of(resource),
        }
    }
}

impl Served {
    /// What a path names; the catalogue's own come first.
    pub fn find(caches: &Caches, group: &str, version: &str, plural: &str) -> Option<Served> {
        let definitions = caches.definitions();
        if let Some(resource) = definitions.served().resource(group, version, plural) {
            return Some(Served::BuiltIn(BuiltIn::of(resource)));
        }
        let custom = definitions.get(group, plural)?.clone();
        let version = custom.served_version(version)?;
        Some(Served::Custom(custom, version))
    }

    /// The resource whose objects are of a kind.
    pub fn of_kind(caches: &Caches, group: &str, version: &str, kind: &str) -> Option<Served> {
        let is_it = |resource: &&Resource| {
            resource.kind == kind && resource.group == group && resource.version == version
        };
        let definitions = caches.definitions();
        if let Some(resource) = definitions.served().resources().find(|own| is_it(own)) {
            return Some(Served::BuiltIn(BuiltIn::of(resource)));
        }

        let mut found = definitions.iter().filter_map(|custom| {
            let place = custom.served_version(version)?;
            is_it(&custom.resource(place)).then(|| Served::Custom(custom.clone(), place))
        });
        found.next()
    }

    pub fn resource(&self) -> &Resource {
        match self {
            Served::BuiltIn(own) => own.resource,
            Served::Custom(custom, version) => custom.resource(*version),
        }
    }

    pub fn kind(&self) -> &Kind {
        match self {
            Served::BuiltIn(own) => own.kind,
            Served::Custom(custom, version) => custom.kind(*version),
        }
    }

    /// What clients see.
    pub fn of(&self) -> Struct<'_> {
        match self {
            Served::BuiltIn(own) => own.of,
            Served::Custom(custom, version) => custom.of(*version),
        }
    }

    pub fn storage_version(&self) -> StorageVersion<'_> {
        match self {
            Served::BuiltIn(own) => own.storage_version,
            Served::Custom(custom, version) => StorageVersion::of_requests(custom, *version),
        }
    }

    /// The version that a definition declares; nothing for the catalogue's own.
    pub fn custom(&self) -> Option<(&Custom, &Version)> {
        match self {
            Served::BuiltIn(_) => None,
            Served::Custom(custom, version) => Some((custom, &custom.versions[*version])),
        }
    }
}
