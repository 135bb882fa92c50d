//! An object in an informer's cache.

use std::ops::Deref;
use std::sync::Arc;

use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Text, Value};

use super::Projection;
use crate::key::ObjectKey;

/// One version of an object, with its projection.
#[derive(Clone, Debug, PartialEq)]
pub struct Cached<T> {
    /// Its key.
    pub key: ObjectKey,
    /// Its UID: another object with the same key has another one.
    pub uid: Text,
    /// Its resource version.
    pub version: ResourceVersion,
    /// The projection.
    pub object: T,
}

impl<T> Deref for Cached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Projection> Cached<T> {
    /// The cache entry of an object.
    ///
    /// # Errors
    /// The object does not have the form that the projection expects.
    pub fn of(object: impl Into<Arc<Value>>) -> Result<Cached<T>, coracle_api::typed::TypedError> {
        let mut object = object.into();
        if object.at(&["metadata", "managedFields"]).is_some() {
            Arc::make_mut(&mut object)
                .meta_mut()
                .members()
                .remove("managedFields");
        }

        let meta = object.meta();
        Ok(Cached {
            key: ObjectKey::of_meta(meta),
            uid: Text::new(meta.uid()),
            version: meta.resource_version().parse().unwrap_or_default(),
            object: T::project(&object)?,
        })
    }
}
