//! Kinds to resources and back, from what discovery said last.
//!
//! What is not found is asked for once more, because a resource may have been added since.

use std::sync::{Arc, Mutex, PoisonError};

use coracle_api::Text;

use super::{Discovery, Served, ServedResource};
use crate::error::Error;
use crate::resource::Resource;

/// Answers which resource a kind has, and which one a name means. Clones share what they know.
#[derive(Clone)]
pub struct Mapper {
    discovery: Discovery,
    known: Arc<Mutex<Option<Arc<Served>>>>,
}

/// What a name or a kind stands for.
pub type Mapping = ServedResource;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// The server has nothing of that name.
    #[error("the server doesn't have a resource type {0:?}")]
    NoResource(String),
    /// The server has no such kind.
    #[error("no matches for kind {kind:?} in version {version:?}")]
    NoKind {
        /// The kind.
        kind: String,
        /// The version that it was to be of.
        version: String,
    },
    /// The server could not be asked.
    #[error(transparent)]
    Discovery(#[from] Error),
}

impl Mapper {
    /// A mapper that knows nothing yet.
    pub fn new(discovery: Discovery) -> Mapper {
        Mapper {
            discovery,
            known: Arc::default(),
        }
    }

    /// Everything that the server has, as far as it is known.
    pub async fn served(&self) -> Result<Arc<Served>, Error> {
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match known {
            Some(known) => Ok(known),
            None => self.learn().await,
        }
    }

    /// Forgets everything: the next question is asked anew.
    pub fn reset(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The resource of a kind; without a version the preferred one.
    pub async fn of_kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Mapping, MappingError> {
        let found = self
            .twice(|served| by_kind(served, group, version, kind))
            .await?;
        found.ok_or_else(|| MappingError::NoKind {
            kind: kind.to_string(),
            version: coracle_api::catalog::api_version(group, version).to_string(),
        })
    }

    /// The resource that a person means: `pods`, `po`, `Pod`, `deployments.apps`,
    /// `deployments.v1.apps`.
    pub async fn of_name(&self, name: &str) -> Result<Mapping, MappingError> {
        let found = self.twice(|served| by_name(served, name)).await?;
        found.ok_or_else(|| MappingError::NoResource(name.to_string()))
    }

    /// Looks twice: at what is known, and where that does not help, at what the server says now.
    async fn twice(
        &self,
        look: impl Fn(&Served) -> Option<Mapping>,
    ) -> Result<Option<Mapping>, Error> {
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(found) = known.and_then(|known| look(&known)) {
            return Ok(Some(found));
        }
        Ok(look(&*self.learn().await?))
    }

    async fn learn(&self) -> Result<Arc<Served>, Error> {
        let served = Arc::new(self.discovery.served().await?);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(served.clone());
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
    // `PodList` is a kind as well, of the same resource, and so is what people type in lower case.
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
            // A group may be told by its beginning: `deployments.app`.
            || (!rest.is_empty() && resource.group.starts_with(rest))
    };

    // The whole name of a resource wins over the short name of another.
    let whole = |found: &&ServedResource| {
        let names: [&Text; 2] = [&found.resource.plural, &found.singular];
        names.iter().any(|name| *name == short) && placed(&found.resource)
    };
    let found = all(served).find(whole);

    found
        .or_else(|| all(served).find(|found| named(found) && placed(&found.resource)))
        .cloned()
}
