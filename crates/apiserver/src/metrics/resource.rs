//! Resources as labels: the catalogue's own, and custom ones.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::Arc;

use coracle_api::catalog::{BUILTIN, Deprecated, Resource};
use coracle_metrics::Labels;

use crate::cache::Caches;
use crate::definitions::ResourceNames;
use crate::served::Served;

/// The version of a resource that a request names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ResourceKey {
    BuiltIn(BuiltInKey),
    /// The names alone: a definition that changes keeps its series.
    Custom(Arc<ResourceNames>),
}

/// A built-in resource, identified by its place in the catalogue.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuiltInKey(&'static Resource);

impl PartialEq for BuiltInKey {
    fn eq(&self, other: &BuiltInKey) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for BuiltInKey {}

impl Hash for BuiltInKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::from_ref(self.0).hash(state);
    }
}

impl ResourceKey {
    pub(super) fn of(served: &Served) -> ResourceKey {
        match served {
            Served::BuiltIn(own) => ResourceKey::built_in(own.resource),
            Served::Custom(custom, version) => {
                ResourceKey::Custom(custom.versions[*version].names.clone())
            }
        }
    }

    pub(super) fn built_in(resource: &'static Resource) -> ResourceKey {
        ResourceKey::BuiltIn(BuiltInKey(resource))
    }

    pub(super) fn group(&self) -> &str {
        match self {
            ResourceKey::BuiltIn(BuiltInKey(resource)) => &resource.group,
            ResourceKey::Custom(names) => &names.group,
        }
    }

    pub(super) fn version(&self) -> &str {
        match self {
            ResourceKey::BuiltIn(BuiltInKey(resource)) => &resource.version,
            ResourceKey::Custom(names) => &names.version,
        }
    }

    pub(super) fn plural(&self) -> &str {
        match self {
            ResourceKey::BuiltIn(BuiltInKey(resource)) => &resource.plural,
            ResourceKey::Custom(names) => &names.plural,
        }
    }

    /// What the catalogue says of a deprecated resource.
    pub(super) fn deprecated(&self) -> Option<&'static Deprecated> {
        match self {
            ResourceKey::BuiltIn(BuiltInKey(resource)) => resource.deprecated.as_ref(),
            ResourceKey::Custom(_) => None,
        }
    }

    /// The release that no longer serves a deprecated resource, as `1.38`; empty if that is not
    /// decided.
    pub(super) fn removed_release(&self) -> &'static str {
        let removed = self.deprecated().map(|of| of.removed.as_str());
        removed.unwrap_or_default().trim_start_matches('v')
    }
}

impl Labels for ResourceKey {
    fn values(&self) -> Vec<Cow<'_, str>> {
        [self.group(), self.version(), self.plural()]
            .map(Cow::Borrowed)
            .to_vec()
    }
}

/// A resource in any version.
#[derive(Clone, Debug)]
pub(super) struct GroupResource(ResourceKey);

impl GroupResource {
    pub(super) fn of(served: &Served) -> GroupResource {
        GroupResource(ResourceKey::of(served))
    }

    pub(super) fn built_in(resource: &'static Resource) -> GroupResource {
        GroupResource(ResourceKey::built_in(resource))
    }

    pub(super) fn custom(names: &Arc<ResourceNames>) -> GroupResource {
        GroupResource(ResourceKey::Custom(names.clone()))
    }
}

impl PartialEq for GroupResource {
    fn eq(&self, other: &GroupResource) -> bool {
        let (one, other) = (&self.0, &other.0);
        one.plural() == other.plural() && one.group() == other.group()
    }
}

impl Eq for GroupResource {}

impl Hash for GroupResource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.plural().hash(state);
    }
}

impl Labels for GroupResource {
    fn values(&self) -> Vec<Cow<'_, str>> {
        vec![self.0.group().into(), self.0.plural().into()]
    }
}

/// A resource that a path names, and what requests of it count.
pub(super) struct Requested {
    pub(super) key: ResourceKey,
    pub(super) subresource: &'static str,
    /// A definition says that the version is deprecated.
    pub(super) is_deprecated_version: bool,
}

impl Requested {
    /// `None`: there is no such resource.
    pub(super) fn find(
        caches: &Caches,
        [group, version, plural, subresource]: [&str; 4],
    ) -> Option<Requested> {
        if let Some(resource) = BUILTIN.resource(group, version, plural) {
            let mut known = resource.subresources.iter();
            let subresource = match subresource {
                "" => "",
                name => known.find(|known| known.name == name)?.name.as_str(),
            };
            return Some(Requested {
                key: ResourceKey::built_in(resource),
                subresource,
                is_deprecated_version: false,
            });
        }

        let definitions = caches.definitions();
        let custom = definitions.get(group, plural)?;
        let version = &custom.versions[custom.served_version(version)?];
        let subresource = match subresource {
            "" => "",
            "status" if version.has_status => "status",
            "scale" if version.replicas.is_some() => "scale",
            _ => return None,
        };
        Some(Requested {
            key: ResourceKey::Custom(version.names.clone()),
            subresource,
            is_deprecated_version: version.warning.is_some(),
        })
    }
}
