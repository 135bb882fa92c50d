//! Create: a new object.

use std::sync::Arc;

use coracle_api::field_error::FieldErrors;
use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Value, gates};
use coracle_kinds::Settle;
use coracle_store::{Revision, SwapError};

use super::{Body, Part, Registry, Scope, Write, meta};
use crate::ApiError;
use crate::admission::{Attributes, Notes, Operation, Options};
use crate::cache::Entry;
use crate::request::{Verb, WriteOptions};
use crate::status::Reason;

/// A generated name that is taken is tried again this often.
const NAME_ATTEMPTS: usize = 8;

/// An object as it was written, with warnings for the client.
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
        let (mut object, mut warnings) = body.object(scope, options.field_validation)?;
        self.settle(scope, &mut object)?;
        meta::settle_namespace(&mut object, scope)?;
        warnings.extend(meta::merge_owners(&mut object));
        self.insert(scope, object, options, warnings.clone())
            .await
            .map_err(|refused| refused.after(warnings))
    }

    /// Writes a new object that has been decoded.
    pub(super) async fn insert(
        &self,
        scope: &Scope<'_>,
        mut object: Value,
        options: &WriteOptions,
        warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        meta::wipe_system_fields(&mut object);
        let tracked =
            super::owners::tracked(self, scope, Part::Main, None, object, options, (self.now)());
        self.insert_tracked(scope, tracked, options, warnings).await
    }

    /// Writes a new object whose owners are known.
    pub(super) async fn insert_tracked(
        &self,
        scope: &Scope<'_>,
        mut object: Value,
        options: &WriteOptions,
        mut warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        meta::wipe_system_fields(&mut object);
        let name = object.meta().name().to_string();

        let notes = Notes::default();
        let write = Write::new(self, scope, Part::Main, options.dry_run);
        let options = Options::Create(options);
        let attributes = write.attributes(Operation::Create, options, &name, &notes);

        self.admission
            .admit(&mut object, &attributes)
            .await
            .map_err(|refused| refused.after(notes.warnings.take()))?;

        // Admission changes neither what the server sets nor where the object is.
        meta::wipe_system_fields(&mut object);
        meta::settle_namespace(&mut object, scope)
            .map_err(|refused| refused.after(notes.warnings.take()))?;
        warnings.extend(meta::merge_owners(&mut object));

        let attempts = if object.meta().name().is_empty() {
            NAME_ATTEMPTS
        } else {
            1
        };

        for attempt in 1..=attempts {
            let tried = if attempt < attempts {
                object.clone()
            } else {
                object.take()
            };

            match self.attempt(&write, &attributes, tried).await {
                Err((error, _)) if error.reason == Reason::AlreadyExists && attempt < attempts => {}
                Ok((entry, noticed)) => {
                    warnings.extend(noticed);
                    warnings.extend(notes.warnings.take());
                    return Ok(Written {
                        entry,
                        warnings,
                        created: true,
                    });
                }
                Err((error, name)) => {
                    return Err(self.taken(scope, &name, error).after(notes.warnings.take()));
                }
            }
        }

        unreachable!("the last attempt returns")
    }

    /// One attempt with one name, which the error has beside the refusal.
    async fn attempt(
        &self,
        write: &Write<'_>,
        attributes: &Attributes<'_>,
        mut object: Value,
    ) -> Result<(Arc<Entry>, Vec<String>), (ApiError, String)> {
        let scope = write.scope;

        let version = object.meta().resource_version().parse::<ResourceVersion>();
        object.meta_mut().set_resource_version(ResourceVersion(0));
        self.fill_new(&mut object, scope);
        let name = object.meta().name().to_string();

        let mut settle: Option<Settle<'_>> = None;
        let result = async {
            if let Some(begun) = scope.strategy.begin(&mut object, None, &write.cx) {
                settle = begun.await?;
            }

            let warnings = self
                .validate(scope, || prepare_and_validate(&mut object, write))
                .await?;

            check_terminating(scope, &name)?;
            let attributes = Attributes {
                name: &name,
                ..*attributes
            };
            let admitted = self.admission.validate(Some(&object), &attributes).await;
            admitted.map_err(|refused| refused.after(warnings.clone()))?;

            // An update that creates has the version of what it expected.
            let is_post = matches!(
                attributes.options,
                Options::Create(options) if options.verb == Some(Verb::Create)
            );
            if is_post && version.is_ok_and(|version| version.0 != 0) && !write.cx.dry_run {
                return Err(ApiError::unexplained(
                    "resourceVersion should not be set on objects to be created",
                ));
            }

            self.complete(scope, &mut object)?;

            let written = self.write_new(scope, object.take(), write.cx.dry_run).await;
            match written {
                Ok(written) => Ok((written, warnings)),
                Err(refused) => Err(refused.after(warnings)),
            }
        }
        .await;

        if let Some(settle) = settle {
            settle(result.is_ok()).await;
        }

        result.map_err(|error| (error, name))
    }

    async fn write_new(
        &self,
        scope: &Scope<'_>,
        object: Value,
        dry_run: bool,
    ) -> Result<Arc<Entry>, ApiError> {
        let name = &object.meta().name().to_string();
        let entry = Arc::new(scope.entry(&object));
        if dry_run {
            if self.cache(scope)?.get(&scope.key(name)).is_some() {
                return Err(ApiError::already_exists(scope.resource, name, false));
            }
            return Ok(entry);
        }

        let key = scope.store_key(name);
        let (entry, object) = self.to_store(scope, entry, object).await?;
        let pending = self.caches.pending_write(&key, &entry, object);
        match self.swap(scope, Revision::ZERO, &key, &entry).await {
            Ok(revision) => {
                self.caches.reached(revision).await;
                drop(pending);
                self.shown(scope, Arc::new(entry.at(revision))).await
            }
            Err(SwapError::Conflict { .. }) => {
                Err(ApiError::already_exists(scope.resource, name, false))
            }
            Err(SwapError::Store(error)) => Err(super::update::store_error(&error)),
        }
    }

    /// Adds to the error that the existing object is being deleted.
    fn taken(&self, scope: &Scope<'_>, name: &str, error: ApiError) -> ApiError {
        if error.reason != Reason::AlreadyExists {
            return error;
        }
        let found = self
            .cache(scope)
            .ok()
            .and_then(|cache| cache.get(&scope.key(name)));
        let going = found.is_some_and(|entry| {
            entry
                .value(scope.storage_version.of)
                .meta()
                .is_being_deleted()
        });
        ApiError::already_exists(scope.resource, name, going).after(error.warnings)
    }
}

/// A definition that is being deleted takes no new objects.
fn check_terminating(scope: &Scope<'_>, name: &str) -> Result<(), ApiError> {
    match scope.custom {
        Some((custom, _)) if custom.is_terminating => {
            let why = "create not allowed while custom resource definition is terminating";
            Err(ApiError::forbidden(scope.resource, name, why))
        }
        _ => Ok(()),
    }
}

/// The kind's part in a create; returns what the writer should know.
fn prepare_and_validate(object: &mut Value, write: &Write<'_>) -> Result<Vec<String>, ApiError> {
    let (scope, cx) = (write.scope, &write.cx);
    let fields = object
        .as_object_mut()
        .ok_or_else(|| ApiError::bad_request("the object is not an object"))?;
    if scope.has_status() && !scope.strategy.keeps_status() {
        fields.remove("status");
    }

    let mut noticed = scope.strategy.notices(object, cx);
    gates::drop_disabled(object, None, scope.storage_version.kind);
    scope.strategy.prepare_create(object, cx);
    scope.canonicalize(object);
    let mut errors = FieldErrors::default();
    let warnings = scope
        .strategy
        .validate_tree(object, None, cx, &mut errors)?;

    noticed.extend(warnings);

    // The kind's own error about a name is more specific than the generic one.
    if errors.is_empty() {
        meta::validate_new(object, scope, &mut errors);
    }

    if !errors.is_empty() {
        let refused = ApiError::invalid(scope.storage_version.kind, object.meta().name(), &errors);
        return Err(refused.after(noticed));
    }

    scope.strategy.canonicalize(object);
    Ok(noticed)
}
