//! Creations whose outcome is unknown.
//!
//! A connection can break after the server has created an object and before the response arrives. A
//! controller that then reads a cache which does not have the object yet would create it a second
//! time. So objects are named here and not by the server, a creation without a response is
//! remembered by its name, and before anything else is created the server is asked for that name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;

use coracle_api::{Text, Value, names};
use coracle_base::sync::Mutex;
use coracle_client::{Access, Error, Written};

/// How many generated names are tried if they are taken: as many as the server tries.
const NAMES: u32 = 8;

/// The creations of one controller whose outcome is unknown, by the UID of the owner.
#[derive(Default)]
pub struct Creations {
    unknown: Mutex<BTreeMap<Text, BTreeSet<Text>>>,
}

impl Creations {
    /// Creates an object. One without a name gets one generated from its `generateName`.
    pub async fn create(
        &self,
        owner: &Text,
        objects: &Access,
        object: &Value,
    ) -> Result<Written, Error> {
        let mut object = object.clone();
        let is_named = !object.meta().name().is_empty();

        let mut tried = 0;
        loop {
            tried += 1;

            if !is_named {
                let name =
                    names::generate(object.meta().generate_name(), (objects.world().random)());
                object.meta_mut().set_name(&name);
            }

            match objects.briefly().create(&object).await {
                Err(error) if error.is_already_exists() && !is_named && tried < NAMES => {}
                created => {
                    if created.as_ref().is_err_and(Error::is_uncertain) {
                        let name = Text::new(object.meta().name());
                        self.lock().entry(owner.clone()).or_default().insert(name);
                    }
                    return created;
                }
            }
        }
    }

    /// Looks up the uncertain creations for an owner and returns the objects that were created:
    /// caches older than them do not show them.
    ///
    /// # Errors
    /// The server cannot be reached: the outcome stays unknown.
    pub async fn resolve(&self, owner: &str, objects: &Access) -> Result<Vec<Value>, Error> {
        let names = self.lock().get(owner).cloned().unwrap_or_default();
        let mut found = Vec::new();
        for name in names {
            found.extend(objects.find(&name).await?);
            if let Some(unknown) = self.lock().get_mut(owner) {
                unknown.remove(&name);
            }
        }

        let mut all = self.lock();
        if all.get(owner).is_some_and(BTreeSet::is_empty) {
            all.remove(owner);
        }

        Ok(found)
    }

    /// Forgets a deleted owner.
    pub fn forget(&self, owner: &str) {
        self.lock().remove(owner);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Text, BTreeSet<Text>>> {
        self.unknown.lock()
    }
}
