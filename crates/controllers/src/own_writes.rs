//! What a controller has itself written: until its caches are as new, what they show is too old to
//! act on.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use coracle_api::Value;
use coracle_api::resource_version::ResourceVersion;
use coracle_client::ObjectKey;

/// The newest versions that were written for each key, by resource.
#[derive(Default)]
pub struct OwnWrites(Mutex<BTreeMap<ObjectKey, BTreeMap<&'static str, ResourceVersion>>>);

impl OwnWrites {
    /// An object of `resource` (`pods`) was written for the sake of `key`.
    pub fn note(&self, key: &ObjectKey, resource: &'static str, written: &Value) {
        self.note_version(
            key,
            resource,
            written
                .meta()
                .resource_version()
                .parse()
                .unwrap_or_default(),
        );
    }

    /// The same, where the version is all that is known.
    pub fn note_version(&self, key: &ObjectKey, resource: &'static str, version: ResourceVersion) {
        let mut all = self.lock();
        let newest = all
            .entry(key.clone())
            .or_default()
            .entry(resource)
            .or_default();
        *newest = version.max(*newest);
    }

    /// Whether a cache, of which `held` says what it holds and how new that is, is older than what
    /// was written.
    pub fn is_behind(&self, key: &ObjectKey, held: &[(&'static str, ResourceVersion)]) -> bool {
        let all = self.lock();
        let Some(written) = all.get(key) else {
            return false;
        };
        held.iter().any(|(resource, version)| {
            written
                .get(resource)
                .is_some_and(|written| version < written)
        })
    }

    /// What was written for is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, BTreeMap<&'static str, ResourceVersion>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
