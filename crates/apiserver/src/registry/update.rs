//! Update: a new version of an object, if nobody else was faster.

use std::sync::Arc;

use coracle_api::codec::canonical;
use coracle_api::field_error::FieldErrors;
use coracle_api::{Value, apply};
use coracle_store::{InvalidRequest, Put, StoreError, SwapError};

use super::create::Written;
use super::{Body, Registry, Scope, meta, owners};
use crate::ApiError;
use crate::cache::Entry;
use crate::request::WriteOptions;

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Which part of an object a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but the status, where the kind has a subresource for it.
    Main,
    Status,
}

impl Registry {
    pub async fn update(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        body: &Body,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let (mut object, warnings) = body.object(scope, options.field_validation)?;
        let given = object.meta().name();
        if given.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        if given != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        meta::settle_namespace(&mut object, scope)?;
        if self.cache(scope)?.get(&scope.key(name)).is_none()
            && scope.resource.create_on_update
            && part == Part::Main
            && object.meta().resource_version().is_empty()
        {
            return self.insert(scope, object, options, warnings).await;
        }
        let written = self.change(scope, name, part, options, |_| Ok(object.clone())).await?;
        Ok(Written { warnings, ..written })
    }

    /// Reads, changes and writes until nobody else was faster. `make` turns the current object into the wanted one,
    /// whose changes become the writer's.
    pub(super) async fn change(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        options: &WriteOptions,
        mut make: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Written, ApiError> {
        let now = (self.now)();
        let make = |old: &Value| Ok(owners::tracked(scope, part, Some(old), make(old)?, options, now));
        self.change_tracked(scope, name, part, options, make).await
    }

    /// As [`Registry::change`], for objects whose owners `make` has settled.
    pub(super) async fn change_tracked(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        options: &WriteOptions,
        mut make: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Written, ApiError> {
        loop {
            let cache = self.cache(scope)?;
            let current =
                cache.get(&scope.key(name)).ok_or_else(|| ApiError::not_found(scope.resource, name))?;
            let old = current.value(scope.of);
            let wanted = make(&old)?;
            let pinned = check_versions(scope, name, &old, &wanted)?;
            let mut new = prepare(scope, part, &old, wanted)?;
            keep_times(&old, &mut new);
            let errors = meta::validate_name(&new);
            if !errors.is_empty() {
                return Err(ApiError::invalid(scope.kind, name, &FieldErrors(errors)));
            }
            let bytes = Entry::encode(&new, scope.of);
            // Nothing changed, so nothing is written and the version stays.
            if bytes == *current.bytes() {
                return Ok(Written { entry: current, warnings: Vec::new(), created: false });
            }
            if options.dry_run {
                let entry = self.entry(scope, name, &bytes, current.revision)?;
                return Ok(Written { entry, warnings: Vec::new(), created: false });
            }
            if new.meta().is_being_deleted() && new.meta().finalizers().next().is_none() {
                let entry = self.remove_now(scope, name, &current).await?;
                return Ok(Written { entry, warnings: Vec::new(), created: false });
            }
            match self.store.replace(current.revision, Put::new(scope.store_key(name), bytes.clone())).await {
                Ok(revision) => {
                    self.caches.reached(revision).await;
                    let entry = self.entry(scope, name, &bytes, revision)?;
                    return Ok(Written { entry, warnings: Vec::new(), created: false });
                }
                Err(SwapError::Conflict { .. }) if pinned => {
                    return Err(ApiError::conflict(scope.resource, name, MODIFIED));
                }
                Err(SwapError::Conflict { at, .. }) => self.caches.reached(at).await,
                Err(SwapError::Store(error)) => return Err(store_error(&error)),
            }
        }
    }

    /// Takes an object away whose last finalizer is gone.
    pub(super) async fn remove_now(
        &self,
        scope: &Scope<'_>,
        name: &str,
        current: &Entry,
    ) -> Result<Arc<Entry>, ApiError> {
        match self.store.remove(scope.store_key(name).into(), current.revision).await {
            Ok(revision) => {
                self.caches.reached(revision).await;
                Ok(Arc::new(current.at(revision)))
            }
            Err(SwapError::Conflict { .. }) => Err(ApiError::conflict(scope.resource, name, MODIFIED)),
            Err(SwapError::Store(error)) => Err(store_error(&error)),
        }
    }
}

/// A write that changes nothing but the times of owners is none.
fn keep_times(old: &Value, new: &mut Value) {
    let mut before = old.clone();
    before.meta_mut().members().remove("resourceVersion");
    apply::keep_times_of_unchanged(&before, new);
}

/// Whether the writer named the version it saw; refused if that is not the current one.
fn check_versions(scope: &Scope<'_>, name: &str, old: &Value, wanted: &Value) -> Result<bool, ApiError> {
    let (seen, uid) = (wanted.meta().resource_version(), wanted.meta().uid());
    if !uid.is_empty() && uid != old.meta().uid() {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            old.meta().uid()
        );
        return Err(ApiError::conflict(scope.resource, name, &why));
    }
    if !seen.is_empty() && seen != "0" && seen != old.meta().resource_version() {
        return Err(ApiError::conflict(scope.resource, name, MODIFIED));
    }
    Ok(!seen.is_empty() && seen != "0")
}

/// Carries over what a write cannot change, and counts generations.
fn prepare(scope: &Scope<'_>, part: Part, old: &Value, mut wanted: Value) -> Result<Value, ApiError> {
    let has_status = scope.resource.subresources.iter().any(|subresource| subresource.name == "status");
    let (Some(new), Some(before)) = (wanted.as_object_mut(), old.as_object()) else {
        return Err(ApiError::bad_request("the object is not an object"));
    };
    let carry = |new: &mut coracle_api::Map, name: &str| match before.get(name) {
        Some(value) => {
            new.insert(name, value.clone());
        }
        None => {
            new.remove(name);
        }
    };
    match part {
        Part::Main if has_status => carry(new, "status"),
        Part::Main => {}
        Part::Status => {
            let names: Vec<String> = before.keys().chain(new.keys()).map(str::to_string).collect();
            for name in names.iter().filter(|name| !matches!(name.as_str(), "status" | "metadata")) {
                carry(new, name);
            }
        }
    }
    new.insert("apiVersion", scope.kind.api_version());
    new.insert("kind", scope.kind.name.clone());
    let metadata = new.object_mut("metadata");
    let old_metadata = before.get("metadata").and_then(Value::as_object);
    for name in [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "selfLink",
        "uid",
    ] {
        match old_metadata.and_then(|old| old.get(name)) {
            Some(value) => metadata.insert(name, value.clone()),
            None => metadata.remove(name),
        };
    }
    metadata.remove("resourceVersion");
    canonical::canonicalize(&mut wanted, scope.of.node());
    if scope.resource.has_generation && part == Part::Main && content_changed(old, &wanted) {
        let generation = old.meta().generation() + 1;
        wanted.meta_mut().set_generation(generation);
    }
    Ok(wanted)
}

/// Whether anything but metadata and status differs.
fn content_changed(old: &Value, new: &Value) -> bool {
    let content = |value: &Value| {
        let members = value.as_object().into_iter().flat_map(coracle_api::Map::iter);
        members
            .filter(|(name, _)| !matches!(*name, "metadata" | "status"))
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect::<Vec<_>>()
    };
    content(old) != content(new)
}

pub(super) fn store_error(error: &StoreError) -> ApiError {
    match error {
        StoreError::Invalid(InvalidRequest::TooLarge { .. }) => {
            ApiError::unexplained("etcdserver: request is too large")
        }
        StoreError::Unavailable(why) => {
            ApiError::new(http::StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why.to_string())
        }
        other => ApiError::internal(other.to_string()),
    }
}
