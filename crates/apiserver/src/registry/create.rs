//! Create: a new object.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::codec::canonical;
use coracle_api::field_error::FieldErrors;
use coracle_store::{Put, Revision, SwapError};

use super::update::Part;
use super::{Body, Registry, Scope, meta};
use crate::ApiError;
use crate::cache::Entry;
use crate::request::WriteOptions;

/// A generated name that is taken is tried again this often.
const NAME_ATTEMPTS: usize = 8;

/// An object as it was written, with what the client is to be warned of.
pub struct Written {
    pub entry: Arc<Entry>,
    pub warnings: Vec<String>,
    /// Whether it did not exist before.
    pub created: bool,
}

impl Registry {
    pub async fn create(
        &self,
        scope: &Scope<'_>,
        body: &Body,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let (mut object, warnings) = body.object(scope, options.field_validation)?;
        if !object.meta().resource_version().is_empty() {
            return Err(ApiError::unexplained("resourceVersion should not be set on objects to be created"));
        }
        meta::settle_namespace(&mut object, scope)?;
        self.insert(scope, object, options, warnings).await
    }

    /// Writes a new object that has been decoded.
    pub(super) async fn insert(
        &self,
        scope: &Scope<'_>,
        object: Value,
        options: &WriteOptions,
        warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        self.insert_as(scope, object, options, warnings, true).await
    }

    /// Writes a new object whose owners are known.
    pub(super) async fn insert_tracked(
        &self,
        scope: &Scope<'_>,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        self.insert_as(scope, object, options, Vec::new(), false).await
    }

    async fn insert_as(
        &self,
        scope: &Scope<'_>,
        mut object: Value,
        options: &WriteOptions,
        warnings: Vec<String>,
        track: bool,
    ) -> Result<Written, ApiError> {
        meta::wipe_system_fields(&mut object);
        if track {
            object = super::owners::tracked(scope, Part::Main, None, object, options, (self.now)());
        }
        let generated = object.meta().name().is_empty();
        let attempts = if generated { NAME_ATTEMPTS } else { 1 };
        for attempt in 1..=attempts {
            let mut candidate = object.clone();
            self.prepare_new(&mut candidate, scope)?;
            let name = candidate.meta().name().to_string();
            match self.write_new(scope, &candidate, options.dry_run).await {
                Err(error) if error.reason == "AlreadyExists" && attempt < attempts => {}
                Ok(entry) => return Ok(Written { entry, warnings, created: true }),
                Err(error) => return Err(self.taken(scope, &name, error)),
            }
        }
        unreachable!("the last attempt returns")
    }

    fn prepare_new(&self, object: &mut Value, scope: &Scope<'_>) -> Result<(), ApiError> {
        self.fill_new(object, scope);
        let fields =
            object.as_object_mut().ok_or_else(|| ApiError::bad_request("the object is not an object"))?;
        fields.insert("apiVersion", scope.kind.api_version());
        fields.insert("kind", scope.kind.name.clone());
        canonical::canonicalize(object, scope.of.node());
        let errors = meta::validate_name(object);
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(scope.kind, object.meta().name(), &FieldErrors(errors)))
    }

    async fn write_new(
        &self,
        scope: &Scope<'_>,
        object: &Value,
        dry_run: bool,
    ) -> Result<Arc<Entry>, ApiError> {
        let name = object.meta().name();
        let bytes = Entry::encode(object, scope.of);
        if dry_run {
            if self.cache(scope)?.get(&scope.key(name)).is_some() {
                return Err(ApiError::already_exists(scope.resource, name, false));
            }
            return self.entry(scope, name, &bytes, Revision::ZERO);
        }
        match self.store.create(Put::new(scope.store_key(name), bytes.clone())).await {
            Ok(revision) => {
                self.caches.reached(revision).await;
                self.entry(scope, name, &bytes, revision)
            }
            Err(SwapError::Conflict { .. }) => Err(ApiError::already_exists(scope.resource, name, false)),
            Err(SwapError::Store(error)) => Err(super::update::store_error(&error)),
        }
    }

    /// An entry for bytes that this server has just encoded.
    pub(super) fn entry(
        &self,
        scope: &Scope<'_>,
        name: &str,
        bytes: &bytes::Bytes,
        revision: Revision,
    ) -> Result<Arc<Entry>, ApiError> {
        let entry = Entry::stored(&scope.key(name), bytes, revision, scope.resource, scope.of);
        entry.map(Arc::new).map_err(|bad| ApiError::internal(bad.to_string()))
    }

    /// Says so if the object that is in the way is going.
    fn taken(&self, scope: &Scope<'_>, name: &str, error: ApiError) -> ApiError {
        if error.reason != "AlreadyExists" {
            return error;
        }
        let found = self.cache(scope).ok().and_then(|cache| cache.get(&scope.key(name)));
        let going = found.is_some_and(|entry| entry.value(scope.of).meta().is_being_deleted());
        ApiError::already_exists(scope.resource, name, going)
    }
}
