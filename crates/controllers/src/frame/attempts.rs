//! Creations of which nobody knows whether they took place.
//!
//! A connection may break after the server has created an object and before it says so. Whoever then looks into a cache
//! that does not have the object yet makes it a second time. So objects are named here, not by the server, a creation
//! without an answer is remembered by its name, and before anything more is made the server is asked what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use coracle_api::{Text, Value, names};
use coracle_client::{Access, Error};

/// How many names are tried, where others have them already: as many as a server tries.
const NAMES: u32 = 8;

/// The creations of one controller whose outcome is unknown, by the key of what they are for.
pub struct Attempts<K> {
    unknown: Mutex<BTreeMap<K, BTreeSet<Text>>>,
}

impl<K: Ord + Clone> Default for Attempts<K> {
    fn default() -> Attempts<K> {
        Attempts::new()
    }
}

impl<K: Ord + Clone> Attempts<K> {
    /// None yet.
    pub fn new() -> Attempts<K> {
        Attempts { unknown: Mutex::new(BTreeMap::new()) }
    }

    /// Creates an object. One without a name is named after its `generateName`.
    pub async fn create(&self, key: &K, objects: &Access, object: &Value) -> Result<Value, Error> {
        let mut object = object.clone();
        let is_named = !object.meta().name().is_empty();
        let mut tried = 0;
        loop {
            tried += 1;
            if !is_named {
                let name = names::generate(object.meta().generate_name(), (objects.world().random)());
                object.meta_mut().set_name(&name);
            }
            match objects.create(&object).await {
                Err(error) if error.is_already_exists() && !is_named && tried < NAMES => {}
                created => {
                    if created.as_ref().is_err_and(Error::is_uncertain) {
                        let name = Text::new(object.meta().name());
                        self.lock().entry(key.clone()).or_default().insert(name);
                    }
                    return created;
                }
            }
        }
    }

    /// Asks what became of the creations for a key. Answers those that did take place: what is older than they are does
    /// not show them.
    ///
    /// # Errors
    /// The server cannot be asked: what is unknown stays so.
    pub async fn resolve(&self, key: &K, objects: &Access) -> Result<Vec<Value>, Error> {
        let names = self.lock().get(key).cloned().unwrap_or_default();
        let mut found = Vec::new();
        for name in names {
            found.extend(objects.find(&name).await?);
            if let Some(unknown) = self.lock().get_mut(key) {
                unknown.remove(&name);
            }
        }
        Ok(found)
    }

    /// What they were for is gone.
    pub fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, BTreeSet<Text>>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
