//! The same requests for built-in kinds, with objects as typed structs.
//!
//! A struct loses the difference between absent, null and zero: use it to create or read objects.
//! To change objects that others have created, change the tree ([`Access`]) or patch.

use std::marker::PhantomData;

use coracle_api::typed;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Access, Deleted, List};
use crate::error::Error;
use crate::options::{DeleteOptions, ListOptions};
use crate::patch::Patch;
use crate::watch::Watch;

/// The objects of one built-in kind.
pub struct TypedAccess<K> {
    access: Access,
    kind: PhantomData<fn() -> K>,
}

/// A list of typed objects, at one resource version.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedList<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The resource version of the list.
    pub resource_version: String,
    /// The continue token of the next page; empty: this was the last one.
    pub continue_token: String,
}

impl<K> Clone for TypedAccess<K> {
    fn clone(&self) -> TypedAccess<K> {
        TypedAccess::new(self.access.clone())
    }
}

impl<K> TypedAccess<K> {
    pub(crate) fn new(access: Access) -> TypedAccess<K> {
        TypedAccess {
            access,
            kind: PhantomData,
        }
    }

    /// Only the objects of one namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> TypedAccess<K> {
        TypedAccess::new(self.access.namespace(namespace))
    }

    /// A subresource of the objects: `status`, `scale` …
    #[must_use]
    pub fn subresource(self, name: &str) -> TypedAccess<K> {
        TypedAccess::new(self.access.subresource(name))
    }

    /// The same access with trees.
    pub fn untyped(&self) -> &Access {
        &self.access
    }
}

impl<K: Serialize + DeserializeOwned> TypedAccess<K> {
    /// Gets one object.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        read(&self.access.get(name).await?)
    }

    /// Lists the objects, or a page of them.
    pub async fn list(&self, options: &ListOptions) -> Result<TypedList<K>, Error> {
        let List {
            items,
            resource_version,
            continue_token,
            ..
        } = self.access.list(options).await?;
        Ok(TypedList {
            items: items.iter().map(read).collect::<Result<_, _>>()?,
            resource_version: resource_version.to_string(),
            continue_token: continue_token.to_string(),
        })
    }

    /// Watches the objects, as trees, which [`coracle_api::typed::from_tree`] converts.
    pub async fn watch(&self, options: &ListOptions) -> Result<Watch, Error> {
        self.access.watch(options).await
    }

    /// Creates an object.
    pub async fn create(&self, object: &K) -> Result<K, Error> {
        read(&self.access.create(&write(object)?).await?)
    }

    /// Replaces an object.
    pub async fn update(&self, object: &K) -> Result<K, Error> {
        read(&self.access.update(&write(object)?).await?)
    }

    /// Patches an object.
    pub async fn patch(&self, name: &str, patch: &Patch) -> Result<K, Error> {
        read(&self.access.patch(name, patch).await?)
    }

    /// Deletes an object.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deleted, Error> {
        self.access.delete(name, options).await
    }
}

fn read<K: DeserializeOwned>(tree: &coracle_api::Value) -> Result<K, Error> {
    typed::from_tree(tree).map_err(|error| Error::Answer(error.to_string()))
}

fn write<K: Serialize>(object: &K) -> Result<coracle_api::Value, Error> {
    typed::to_tree(object).map_err(|error| Error::Request(error.to_string()))
}
