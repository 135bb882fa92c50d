//! An object as an informer holds it.

use std::ops::Deref;
use std::sync::Arc;

use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Text, Value};

use super::Projection;
use crate::key::ObjectKey;

/// What is known of one version of an object, and what its projection made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cached<T> {
    /// Where it is.
    pub key: ObjectKey,
    /// Which it is: another object of the same key has another one.
    pub uid: Text,
    /// Which version of it this is.
    pub version: ResourceVersion,
    /// What is held of it.
    pub object: T,
}

impl<T> Deref for Cached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Projection> Cached<T> {
    /// What an informer holds of an object.
    ///
    /// # Errors
    /// The object is not of the form that the projection expects.
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
