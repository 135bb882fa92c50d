//! The server as its own client: its own objects are written through the registry like those of any
//! client, as `system:apiserver`.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Resource};
use coracle_api::codec::json;
use coracle_api::codec::media_type::MediaType;
use http::StatusCode;

use crate::ApiError;
use crate::admission::Warnings;
use crate::authn::Caller;
use crate::cache::{Cache, Entry};
use crate::registry::{Body, Part, Registry, Scope};
use crate::request::{DeleteOptions, WriteOptions};

#[derive(Clone)]
pub struct Loopback {
    pub registry: Arc<Registry>,
    caller: Arc<Caller>,
}

impl Loopback {
    pub fn new(registry: Arc<Registry>) -> Loopback {
        Loopback {
            registry,
            caller: Arc::new(Caller::system()),
        }
    }

    /// An object as it is now, with its owners, to be changed; `key` is `namespace/name`, or the
    /// name of a cluster-wide object.
    pub fn get(&self, resource: &'static Resource, key: &str) -> Option<Value> {
        let cache = self.cache(resource);
        Some(cache.get(key)?.value(cache.storage_version().of))
    }

    /// The objects of a resource.
    pub fn cache(&self, resource: &'static Resource) -> &Arc<Cache> {
        let prefix = resource
            .storage
            .as_ref()
            .map(|storage| storage.prefix.as_str())
            .unwrap_or_default();
        self.registry
            .caches
            .get(prefix)
            .expect("the server's own resources are stored")
    }

    /// Creates an object; that it is there already is no error.
    pub async fn ensure(
        &self,
        resource: &'static Resource,
        namespace: &str,
        manager: &str,
        object: &Value,
    ) -> Result<(), ApiError> {
        let scope = Scope::new(resource, namespace, &self.caller);
        match self
            .registry
            .create(&scope, &body(object), &options(manager, None))
            .await
        {
            Err(error) if error.code != StatusCode::CONFLICT => Err(error),
            _ => Ok(()),
        }
    }

    /// Replaces an object, if its version is still that of `object`.
    pub async fn update(
        &self,
        resource: &'static Resource,
        namespace: &str,
        part: Part,
        manager: &str,
        object: &Value,
    ) -> Result<Arc<Entry>, ApiError> {
        let scope = Scope::new(resource, namespace, &self.caller);
        let name = object.meta().name();
        let written = self
            .registry
            .update(&scope, name, part, &body(object), &options(manager, None))
            .await?;
        Ok(written.entry)
    }

    /// Deletes an object; it is no error if it does not exist.
    pub async fn delete(
        &self,
        resource: &'static Resource,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let scope = Scope::new(resource, namespace, &self.caller);
        match self
            .registry
            .delete(
                &scope,
                name,
                &DeleteOptions::default(),
                &Warnings::default(),
            )
            .await
        {
            Err(error) if error.code != StatusCode::NOT_FOUND => Err(error),
            _ => Ok(()),
        }
    }

    /// Applies a status, taking what others own of it.
    pub async fn apply_status(
        &self,
        resource: &'static Resource,
        namespace: &str,
        manager: &str,
        object: &Value,
    ) -> Result<(), ApiError> {
        let scope = Scope::new(resource, namespace, &self.caller);
        let (name, text) = (object.meta().name(), json::to_vec(object));
        self.registry
            .apply(
                &scope,
                name,
                Part::Status,
                &text,
                &options(manager, Some(true)),
            )
            .await?;

        Ok(())
    }
}

/// A built-in resource.
pub fn resource(group: &str, version: &str, plural: &str) -> &'static Resource {
    BUILTIN
        .resource(group, version, plural)
        .expect("the resource is built in")
}

fn body(object: &Value) -> Body {
    Body {
        bytes: json::to_vec(object).into(),
        media_type: MediaType::Json,
    }
}

fn options(manager: &str, force: Option<bool>) -> WriteOptions {
    WriteOptions {
        field_manager: manager.to_string(),
        force,
        ..WriteOptions::default()
    }
}
