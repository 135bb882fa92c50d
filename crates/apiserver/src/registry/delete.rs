//! Delete: at once, or first marked when somebody has to finish something.

use std::sync::Arc;

use coracle_api::Value;

use super::update::Part;
use super::{Registry, Scope};
use crate::ApiError;
use crate::cache::Entry;
use crate::request::{DeleteOptions, ListOptions, Propagation, WriteOptions};

/// What became of a delete.
pub enum Deleted {
    /// It is gone.
    Gone(Arc<Entry>),
    /// It is marked; somebody has a finalizer on it.
    Pending(Arc<Entry>),
}

impl Registry {
    pub async fn delete(
        &self,
        scope: &Scope<'_>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let cache = self.cache(scope)?;
        let current = cache.get(&scope.key(name)).ok_or_else(|| ApiError::not_found(scope.resource, name))?;
        let object = current.value(scope.of);
        check_preconditions(scope, name, &object, options)?;
        let propagation = finalizer_of(options.propagation);
        let waits = propagation.is_some() || object.meta().finalizers().next().is_some();
        if options.dry_run {
            return Ok(if waits { Deleted::Pending(current) } else { Deleted::Gone(current) });
        }
        if !waits {
            return self.remove_now(scope, name, &current).await.map(Deleted::Gone);
        }
        let now = (self.now)();
        let mark = |old: &Value| {
            let mut new = old.clone();
            let going = old.meta().is_being_deleted();
            let mut metadata = new.meta_mut();
            if let Some(finalizer) = propagation {
                metadata.add_finalizer(finalizer);
            }
            if !going {
                metadata.set_deletion_timestamp(Some(now));
                metadata.set_deletion_grace_period_seconds(Some(0));
            }
            Ok(new)
        };
        let written = self.change(scope, name, Part::Main, &WriteOptions::default(), mark).await?;
        Ok(Deleted::Pending(written.entry))
    }

    /// Deletes what a list with these options shows; returns what was there.
    pub async fn delete_collection(
        &self,
        scope: &Scope<'_>,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<super::List, ApiError> {
        let found = self.list(scope, list)?;
        for entry in &found.entries {
            let scope = Scope { namespace: entry.namespace(), ..*scope };
            let name = entry.key.rsplit('/').next().unwrap_or_default();
            match self.delete(&scope, name, options).await {
                Err(error) if error.code != http::StatusCode::NOT_FOUND => return Err(error),
                _ => {}
            }
        }
        Ok(found)
    }
}

fn check_preconditions(
    scope: &Scope<'_>,
    name: &str,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let metadata = object.meta();
    let failed = |what: &str, wanted: &str, found: &str| {
        let why =
            format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
        Err(ApiError::conflict(scope.resource, name, &why))
    };
    match (&options.uid, &options.version) {
        (Some(uid), _) if uid != metadata.uid() => failed("UID", uid, metadata.uid()),
        (_, Some(version)) if version != metadata.resource_version() => {
            failed("ResourceVersion", version, metadata.resource_version())
        }
        _ => Ok(()),
    }
}

/// Who has to finish something before the object goes.
fn finalizer_of(propagation: Option<Propagation>) -> Option<&'static str> {
    match propagation {
        Some(Propagation::Orphan) => Some("orphan"),
        Some(Propagation::Foreground) => Some("foregroundDeletion"),
        Some(Propagation::Background) | None => None,
    }
}
