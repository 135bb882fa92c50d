//! The resource of a request.

use std::any::TypeId;
use std::fmt;

use coracle_api::{Text, catalog};
use k8s_openapi::NamespaceResourceScope;

/// A resource of one group and version, and the kind of its objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// Empty for the core group.
    pub group: Text,
    /// `v1`.
    pub version: Text,
    /// The plural name in paths: `deployments`.
    pub plural: Text,
    /// `Deployment`.
    pub kind: Text,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

impl Resource {
    /// A resource by its names.
    pub fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Resource {
        let text = Text::new;
        Resource {
            group: text(group),
            version: text(version),
            plural: text(plural),
            kind: text(kind),
            namespaced,
        }
    }

    /// A built-in resource, from the catalogue.
    ///
    /// # Panics
    /// If there is no such resource: its name is a constant in the program.
    pub fn builtin(group: &str, version: &str, plural: &str) -> Resource {
        let found = catalog::BUILTIN.resource(group, version, plural);
        let found = found
            .unwrap_or_else(|| panic!("{plural} of {group}/{version} is not a built-in resource"));
        Resource {
            group: found.group.clone(),
            version: found.version.clone(),
            plural: found.plural.clone(),
            kind: found.kind.clone(),
            namespaced: found.namespaced,
        }
    }

    /// The resource of a typed struct.
    pub fn of<K: k8s_openapi::Resource>() -> Resource
    where
        K::Scope: 'static,
    {
        let namespaced = TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>();
        Resource::new(
            K::GROUP,
            K::VERSION,
            K::URL_PATH_SEGMENT,
            K::KIND,
            namespaced,
        )
    }

    /// `apps/v1`, or `v1`.
    pub fn api_version(&self) -> Text {
        catalog::api_version(&self.group, &self.version)
    }

    /// The path of its group and version.
    pub(crate) fn root(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}

/// As in upstream's messages: `deployments.apps`.
impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => out.write_str(&self.plural),
            group => write!(out, "{}.{group}", self.plural),
        }
    }
}
