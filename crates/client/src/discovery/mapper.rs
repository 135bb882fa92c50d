//! Maps kinds and names to resources, from cached discovery.
//!
//! If something is not found, discovery is repeated once, because the resource may have been added
//! since.

use std::sync::Arc;

use coracle_api::Text;
use coracle_base::sync::Mutex;

use super::{Discovery, Served, ServedResource};
use crate::error::Error;
use crate::resource::Resource;

/// Maps kinds and names to resources. Clones share the cache.
#[derive(Clone)]
pub struct Mapper {
    discovery: Discovery,
    known: Arc<Mutex<Option<Arc<Served>>>>,
}

/// The resource of a name or a kind.
pub type Mapping = ServedResource;

/// Why there is no mapping.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// The server has no resource of that name.
    #[error("the server doesn't have a resource type {0:?}")]
    NoResource(String),
    /// The server has no such kind.
    #[error("no matches for kind {kind:?} in version {version:?}")]
    NoKind {
        /// The kind.
        kind: String,
        /// The requested version.
        version: String,
    },
    /// Discovery failed.
    #[error(transparent)]
    Discovery(#[from] Error),
}

impl Mapper {
    /// A mapper with an empty cache.
    pub fn new(discovery: Discovery) -> Mapper {
        Mapper {
            discovery,
            known: Arc::default(),
        }
    }

    /// All resources of the server, from the cache if possible.
    pub async fn served(&self) -> Result<Arc<Served>, Error> {
        let known = self.known.lock().clone();
        match known {
            Some(known) => Ok(known),
            None => self.refresh().await,
        }
    }

    /// Clears the cache.
    pub fn reset(&self) {
        *self.known.lock() = None;
    }

    /// The resource of a kind; without a version the preferred one.
    pub async fn of_kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Mapping, MappingError> {
        let found = self
            .with_refresh(|served| by_kind(served, group, version, kind))
            .await?;
        found.ok_or_else(|| MappingError::NoKind {
            kind: kind.to_string(),
            version: coracle_api::catalog::api_version(group, version).to_string(),
        })
    }

    /// The resource of a user-given name: `pods`, `po`, `Pod`, `deployments.apps`,
    /// `deployments.v1.apps`.
    pub async fn of_name(&self, name: &str) -> Result<Mapping, MappingError> {
        let found = self.with_refresh(|served| by_name(served, name)).await?;
        found.ok_or_else(|| MappingError::NoResource(name.to_string()))
    }

    /// Looks in the cache, and if that fails, in a fresh discovery.
    async fn with_refresh(
        &self,
        look: impl Fn(&Served) -> Option<Mapping>,
    ) -> Result<Option<Mapping>, Error> {
        let known = self.known.lock().clone();
        if let Some(found) = known.and_then(|known| look(&known)) {
            return Ok(Some(found));
        }
        Ok(look(&*self.refresh().await?))
    }

    async fn refresh(&self) -> Result<Arc<Served>, Error> {
        let served = Arc::new(self.discovery.served().await?);
        *self.known.lock() = Some(served.clone());
        Ok(served)
    }
}

/// Resources in order of preference: core first, of each group the preferred version first.
fn all(served: &Served) -> impl Iterator<Item = &ServedResource> {
    served
        .groups
        .iter()
        .flat_map(|group| group.versions.iter())
        .flat_map(|version| version.resources.iter())
}

fn by_kind(served: &Served, group: &str, version: &str, kind: &str) -> Option<Mapping> {
    // `PodList` maps to the same resource, and so does a kind in lower case.
    let bare = kind.strip_suffix("List").unwrap_or(kind);
    let fits = |found: &Resource, kind: &str| {
        found.group == group
            && (version.is_empty() || found.version == version)
            && found.kind.eq_ignore_ascii_case(kind)
    };

    let find = |kind: &str| {
        all(served)
            .find(|found| fits(&found.resource, kind))
            .cloned()
    };

    find(kind).or_else(|| find(bare))
}

fn by_name(served: &Served, name: &str) -> Option<Mapping> {
    let lower = name.to_lowercase();
    let (short, rest) = lower.split_once('.').unwrap_or((&lower, ""));
    let named = |found: &ServedResource| {
        let resource = &found.resource;
        resource.plural == short
            || found.singular == short
            || resource.kind.eq_ignore_ascii_case(short)
            || found.short_names.iter().any(|name| name == short)
    };

    let placed = |resource: &Resource| {
        let (first, group) = rest.split_once('.').unwrap_or((rest, ""));
        rest.is_empty()
            || resource.group == rest
            || (resource.version == first && resource.group == group)
            // A prefix of the group is enough: `deployments.app`.
            || (!rest.is_empty() && resource.group.starts_with(rest))
    };

    // A full resource name has precedence over a short name.
    let whole = |found: &&ServedResource| {
        let names: [&Text; 2] = [&found.resource.plural, &found.singular];
        names.iter().any(|name| *name == short) && placed(&found.resource)
    };
    let found = all(served).find(whole);

    found
        .or_else(|| all(served).find(|found| named(found) && placed(&found.resource)))
        .cloned()
}
