//! The writes of a controller itself: until its caches have caught up with them, the caches are too
//! old to act on.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use coracle_api::Value;
use coracle_api::resource_version::ResourceVersion;
use coracle_base::sync::Mutex;
use coracle_client::ObjectKey;

/// The newest resource versions written for each key, by resource.
#[derive(Default)]
pub struct OwnWrites(Mutex<BTreeMap<ObjectKey, BTreeMap<&'static str, ResourceVersion>>>);

impl OwnWrites {
    /// Notes that an object of `resource` (`pods`) was written on behalf of `key`.
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

    /// The same, where only the version is known.
    pub fn note_version(&self, key: &ObjectKey, resource: &'static str, version: ResourceVersion) {
        let mut all = self.lock();
        let newest = all
            .entry(key.clone())
            .or_default()
            .entry(resource)
            .or_default();
        *newest = version.max(*newest);
    }

    /// Whether a cache is older than what was written. `held` lists what each cache holds and its
    /// version.
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

    /// Forgets a deleted object.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, BTreeMap<&'static str, ResourceVersion>>> {
        self.0.lock()
    }
}
