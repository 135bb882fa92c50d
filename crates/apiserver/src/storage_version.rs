//! The storage version: what everything between a request's body and its response works on.
//!
//! Most resources are stored in the version they are served in. Where they are not, and where several
//! resources show the same stored objects, bodies are converted to the storage version when they are
//! read, and responses from it when they are written. Custom resources are converted by their
//! definition.

use std::borrow::Cow;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Kind, Resource, Struct};
use coracle_api::codec::canonical;
use coracle_api::convert::{ConvertError, convert};

use crate::definitions::Compiled;

/// How objects of a resource are stored.
#[derive(Clone, Copy, Debug)]
pub struct StorageVersion<'a> {
    /// The resource that serves them in the storage version, if there is one: selectors compare its
    /// selectable fields.
    pub resource: &'a Resource,
    pub kind: &'a Kind,
    pub of: Struct<'a>,
    /// Of a custom resource.
    pub definition: Option<&'a Compiled>,
}

impl StorageVersion<'static> {
    pub fn of(resource: &'static Resource) -> StorageVersion<'static> {
        let (group, version) = match &resource.storage {
            Some(storage) => (&storage.group, &storage.version),
            None => (&resource.group, &resource.version),
        };
        let kind = BUILTIN.kind(group, version, &resource.kind);
        let kind = kind.expect("the catalogue has the storage kind of every resource");
        let resource = BUILTIN
            .resource(group, version, &resource.plural)
            .unwrap_or(resource);

        StorageVersion {
            resource,
            kind,
            of: BUILTIN.root(kind),
            definition: None,
        }
    }
}

impl<'a> StorageVersion<'a> {
    /// Of the resources of a definition.
    pub fn of_definition(definition: &'a Compiled) -> StorageVersion<'a> {
        StorageVersion::of_version(definition, definition.storage())
    }

    /// What requests for a version of a definition work on: the storage version, or the requested
    /// one where a webhook converts objects as they are read from the store and written to it.
    pub fn of_requests(definition: &'a Compiled, version: usize) -> StorageVersion<'a> {
        match definition.conversion {
            Some(_) => StorageVersion::of_version(definition, version),
            None => StorageVersion::of_definition(definition),
        }
    }

    fn of_version(definition: &'a Compiled, version: usize) -> StorageVersion<'a> {
        StorageVersion {
            resource: definition.resource(version),
            kind: definition.kind(version),
            of: definition.of(version),
            definition: Some(definition),
        }
    }
}

impl StorageVersion<'_> {
    /// Whether objects of this kind are stored without conversion.
    pub fn keeps(&self, kind: &Kind) -> bool {
        self.kind.version == kind.version && self.kind.group == kind.group
    }

    /// Converts an object to the storage version.
    pub fn take_in(&self, object: Value) -> Result<Value, ConvertError> {
        let mut object = match self.definition {
            Some(definition) => definition.renamed(object, self.kind),
            None => convert(object, self.kind)?,
        };
        canonical::canonicalize(&mut object, self.of.node());
        Ok(object)
    }

    /// The same for a stored object, which may be old: its definition may have changed since.
    pub fn read_in(&self, object: Value) -> Result<Value, ConvertError> {
        match self.definition {
            Some(definition) if definition.conversion.is_some() => {
                let mut object = definition.read(object);
                canonical::canonicalize(&mut object, self.of.node());
                Ok(object)
            }
            Some(definition) => self.take_in(definition.read(object)),
            None => self.take_in(object),
        }
    }

    /// A stored object, converted to `kind`.
    pub fn show<'v>(&self, object: Cow<'v, Value>, kind: &Kind) -> Cow<'v, Value> {
        if self.keeps(kind) {
            return object;
        }
        if let Some(definition) = self.definition {
            return Cow::Owned(definition.shown(object.into_owned(), &kind.version));
        }
        let shown = convert(object.into_owned(), kind);
        Cow::Owned(shown.expect("a stored object converts to every served version"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_has_a_storage_version_and_those_that_share_storage_share_it() {
        for resource in BUILTIN.resources() {
            StorageVersion::of(resource);
        }

        let storage_version = |group, version, plural| {
            StorageVersion::of(BUILTIN.resource(group, version, plural).unwrap())
        };
        let events = storage_version("events.k8s.io", "v1", "events");
        assert!(std::ptr::eq(
            events.resource,
            storage_version("", "v1", "events").resource
        ));

        assert_eq!(events.kind.api_version(), "v1");
        assert_eq!(
            storage_version("autoscaling", "v1", "horizontalpodautoscalers")
                .kind
                .version,
            "v2"
        );

        let definitions =
            storage_version("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        assert_eq!(
            (
                definitions.kind.version.as_str(),
                definitions.resource.version.as_str()
            ),
            ("v1beta1", "v1")
        );
    }
}
