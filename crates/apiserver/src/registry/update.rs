//! Update: writes a new version of an object, unless it was changed concurrently.

use std::sync::Arc;

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::go_text::{Quoted, parse_uint};
use coracle_api::{Map, Path, Value, apply, gates};
use coracle_kinds::Settle;
use coracle_store::{InvalidRequest, StoreError, SwapError};

use super::create::Written;
use super::{Body, Part, Registry, Scope, Write, meta, owners};
use crate::ApiError;
use crate::admission::{Attributes, Notes, Operation, Options};
use crate::cache::Entry;
use crate::request::{Verb, WriteOptions};
use crate::status::Reason;

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// A subresource that shows part of an object as an object of another kind. The object is changed
/// through it, and admission sees it.
pub(super) struct Through<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) part: Part,
    /// What it shows of an object.
    pub(super) shown: &'a (dyn Fn(&Value) -> Value + Sync),
    /// The object with what it shows changed.
    pub(super) put: &'a (dyn Fn(&Value, &Value) -> Result<Value, ApiError> + Sync),
}

/// What became of one try.
enum Attempt {
    Done(Written),
    /// There was a concurrent write, which the caches have.
    Again,
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
        let (mut object, mut warnings) = body.object(scope, options.field_validation)?;
        self.settle(scope, &mut object)?;
        meta::check_name(&object, name)?;
        meta::settle_namespace(&mut object, scope)?;
        warnings.extend(meta::merge_owners(&mut object));

        if self.cache(scope)?.get(&scope.key(name)).is_none()
            && scope.resource.create_on_update
            && matches!(part, Part::Main | Part::Status)
            && object.meta().resource_version().is_empty()
        {
            return self.insert(scope, object, options, warnings).await;
        }

        let make = |old: &Value| {
            check_uid(scope, name, old, &object, options.dry_run)?;
            Ok(object.clone())
        };

        match self.change(scope, name, part, options, make).await {
            Ok(mut written) => {
                written.warnings.splice(..0, warnings);
                Ok(written)
            }
            Err(refused) => Err(refused.after(warnings)),
        }
    }

    /// Reads, changes and writes until there is no conflict. `make` turns the current object into
    /// the new one, whose changes become the writer's.
    pub(super) async fn change(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        options: &WriteOptions,
        mut make: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Written, ApiError> {
        let now = (self.now)();
        let make = |old: &Value| {
            Ok(owners::tracked(
                self,
                scope,
                part,
                Some(old),
                make(old)?,
                options,
                now,
            ))
        };

        self.change_tracked(scope, name, part, options, make).await
    }

    /// As [`Registry::change`], for objects whose owners `make` has settled.
    pub(super) async fn change_tracked(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        options: &WriteOptions,
        make: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Written, ApiError> {
        let mut write = Write::new(self, scope, part, options.dry_run);
        if options.verb == Some(Verb::Patch) {
            write.cx.update_verb = "patch";
        }
        self.change_through(&write, None, name, options, make).await
    }

    /// The same, perhaps through a subresource: then `make` makes what that shows.
    pub(super) async fn change_through(
        &self,
        write: &Write<'_>,
        through: Option<&Through<'_>>,
        name: &str,
        options: &WriteOptions,
        mut make: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Written, ApiError> {
        let scope = write.scope;
        let options = Options::Update(options);

        loop {
            let current = self.current(scope, name).await?;
            let old = self.caches.trees.whole(&current, scope.storage_version.of);
            let mut new = make(&old)?;
            let mut settle = None;

            let change = Change {
                write,
                through,
                name,
                options,
                current: &current,
                old: &old,
            };
            let result = self.try_change(&change, &mut new, &mut settle).await;
            if let Some(settle) = settle {
                settle(matches!(result, Ok(Attempt::Done(_)))).await;
            }
            if let Attempt::Done(written) = result? {
                return Ok(written);
            }
        }
    }

    async fn try_change<'a>(
        &self,
        change: &Change<'a>,
        new: &mut Value,
        settle: &mut Option<Settle<'a>>,
    ) -> Result<Attempt, ApiError> {
        let Change {
            write,
            name,
            current,
            old,
            ..
        } = *change;
        let (scope, cx) = (write.scope, &write.cx);
        let notes = Notes::default();
        let refused = |refused: ApiError| refused.after(notes.warnings.take());

        let seen = change.seen(self);
        let attributes = seen.attributes(change, &notes);
        if change.through.is_none() {
            check_versions(scope, name, old, new)?;
        }
        self.admission
            .admit(new, &attributes)
            .await
            .map_err(refused)?;
        if let Some(through) = change.through {
            *new = (through.put)(old, new)?;
            check_versions(scope, name, old, new)?;
        }

        if let Some(begun) = scope.strategy.begin(new, Some(old), cx) {
            *settle = begun.await?;
        }

        let mut warnings = self
            .validate(scope, || prepare_and_validate(new, old, write))
            .await?;

        let shown = change.through.map(|through| (through.shown)(new));
        let admitted = self
            .admission
            .validate(Some(shown.as_ref().unwrap_or(new)), &attributes)
            .await
            .map_err(refused);
        admitted.map_err(|refused| refused.after(warnings.clone()))?;

        new.meta_mut().members().remove("resourceVersion");
        // A write that changes nothing but the times of owners is none.
        apply::keep_times_of_unchanged(old, new);

        warnings.extend(notes.warnings.take());
        self.complete(scope, new)?;

        let entry = Arc::new(scope.entry(new));
        let done = |entry| {
            Ok(Attempt::Done(Written {
                entry,
                warnings,
                created: false,
            }))
        };

        // Nothing changed, so nothing is written and the version is the same.
        if entry.bytes() == current.bytes() && !current.is_old() {
            return done(current.clone());
        }

        if cx.dry_run {
            return done(Arc::new(entry.at(current.revision)));
        }

        if super::delete::is_released(scope, new, old) {
            return match self.remove_now(write, name, current, new).await {
                Err(error) if error.reason == Reason::Conflict => Ok(Attempt::Again),
                removed => removed.and_then(|_| done(Arc::new(entry.at(current.revision)))),
            };
        }

        match self
            .replace(scope, name, current, &entry, new.take())
            .await?
        {
            Some(written) => done(written),
            // An update that named its version is refused in the next attempt; a patch without one
            // is applied to the version that is there then.
            None => Ok(Attempt::Again),
        }
    }

    /// Reads, changes and writes until there is no conflict, without the kind's strategy and field
    /// owners: `change` must return a valid object.
    pub(crate) async fn rewrite(
        &self,
        scope: &Scope<'_>,
        name: &str,
        dry_run: bool,
        change: impl Fn(&mut Value) -> Result<(), ApiError>,
    ) -> Result<Arc<Entry>, ApiError> {
        loop {
            let current = self.current(scope, name).await?;
            let mut new = self.caches.trees.whole(&current, scope.storage_version.of);
            change(&mut new)?;
            new.meta_mut().members().remove("resourceVersion");

            let entry = Arc::new(scope.entry(&new));
            if dry_run || entry.bytes() == current.bytes() {
                return Ok(Arc::new(entry.at(current.revision)));
            }
            if let Some(written) = self.replace(scope, name, &current, &entry, new).await? {
                return Ok(written);
            }
        }
    }

    /// Swaps a new version in for `current`, which was decoded to `tree`; `None`: that is no longer
    /// the newest, and the caches have the one that is.
    pub(super) async fn replace(
        &self,
        scope: &Scope<'_>,
        name: &str,
        current: &Entry,
        entry: &Arc<Entry>,
        tree: Value,
    ) -> Result<Option<Arc<Entry>>, ApiError> {
        let key = scope.store_key(name);
        let (entry, tree) = self.to_store(scope, entry.clone(), tree).await?;
        let pending = self.caches.pending_write(&key, &entry, tree);
        match self.swap(scope, current.revision, &key, &entry).await {
            Ok(revision) => {
                self.caches.reached(revision).await;
                drop(pending);
                let written = Arc::new(entry.at(revision));
                self.shown(scope, written).await.map(Some)
            }
            Err(SwapError::Conflict { at, .. }) => {
                self.caches.caught_up(&*self.store, at).await;
                Ok(None)
            }
            Err(SwapError::Store(error)) => Err(store_error(&error)),
        }
    }

    /// Takes an object away that nothing holds any more. `last` is how it looked then.
    pub(super) async fn remove_now(
        &self,
        write: &Write<'_>,
        name: &str,
        current: &Entry,
        last: &Value,
    ) -> Result<Arc<Entry>, ApiError> {
        let (scope, cx) = (write.scope, &write.cx);
        match self
            .store
            .remove(scope.store_key(name), current.revision)
            .await
        {
            Ok(revision) => {
                self.caches.reached(revision).await;
                if let Some(after) = scope.strategy.after_delete(last, cx) {
                    after.await;
                }
                Ok(Arc::new(current.at(revision)))
            }
            Err(SwapError::Conflict { at, .. }) => {
                self.caches.caught_up(&*self.store, at).await;
                Err(ApiError::conflict(scope.resource, name, MODIFIED))
            }
            Err(SwapError::Store(error)) => Err(store_error(&error)),
        }
    }
}

/// One try to change an object.
#[derive(Clone, Copy)]
struct Change<'a> {
    write: &'a Write<'a>,
    through: Option<&'a Through<'a>>,
    name: &'a str,
    options: Options<'a>,
    current: &'a Arc<Entry>,
    old: &'a Value,
}

/// What admission sees of a change.
struct AdmissionView<'a> {
    /// Through a subresource: the write of what it shows.
    shown: Option<(Write<'a>, Value)>,
}

impl<'a> Change<'a> {
    fn seen(&self, registry: &'a Registry) -> AdmissionView<'a> {
        let shown = self.through.map(|through| {
            let dry_run = self.write.cx.dry_run;
            let write = Write {
                definition: self.write.definition,
                ..Write::new(registry, &through.scope, through.part, dry_run)
            };
            (write, (through.shown)(self.old))
        });
        AdmissionView { shown }
    }
}

impl AdmissionView<'_> {
    fn attributes<'s>(&'s self, change: &Change<'s>, notes: &'s Notes) -> Attributes<'s> {
        let (write, old) = match &self.shown {
            Some((write, old)) => (write, old),
            None => (change.write, change.old),
        };
        Attributes {
            old: Some(old),
            ..write.attributes(Operation::Update, change.options, change.name, notes)
        }
    }
}

/// An update with a UID is not for another object of the same name.
fn check_uid(
    scope: &Scope<'_>,
    name: &str,
    old: &Value,
    wanted: &Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    let (uid, found) = (wanted.meta().uid(), old.meta().uid());
    if uid.is_empty() || uid == found {
        return Ok(());
    }

    let key = String::from_utf8_lossy(&scope.store_key(name)).into_owned();

    // Upstream's dry run is above the layer that knows the prefix of keys in the store.
    let key = if dry_run {
        key.trim_start_matches("/registry")
    } else {
        &key
    };

    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    );

    Err(ApiError::conflict(scope.resource, name, &why))
}

/// An update with a resource version is refused if that is not the current one.
fn check_versions(
    scope: &Scope<'_>,
    name: &str,
    old: &Value,
    wanted: &Value,
) -> Result<(), ApiError> {
    let seen = wanted.meta().resource_version();
    if !seen.is_empty() {
        parse_uint(seen).map_err(|cause| {
            ApiError::unexplained(format!(
                "strconv.ParseUint: parsing {}: {cause}",
                Quoted(seen)
            ))
        })?;
    }

    if seen.is_empty() || seen == "0" {
        if scope.resource.needs_version {
            let place = Path::Root.field("metadata");
            let error = FieldError::invalid(
                &place.field("resourceVersion"),
                "0".into(),
                "must be specified for an update",
            );

            let resource = scope.resource;
            return Err(ApiError::invalid_kind(
                &resource.group,
                &resource.plural,
                name,
                &error.into(),
            ));
        }

        return Ok(());
    }

    if seen != old.meta().resource_version() {
        return Err(ApiError::conflict(scope.resource, name, MODIFIED));
    }

    Ok(())
}

/// The kind's part in an update; returns what the writer should know.
fn prepare_and_validate(
    new: &mut Value,
    old: &Value,
    write: &Write<'_>,
) -> Result<Vec<String>, ApiError> {
    let (scope, cx, part) = (write.scope, &write.cx, write.cx.part);
    carry_over(scope, part, old, new)?;
    gates::drop_disabled(new, Some(old), scope.storage_version.kind);
    scope.strategy.prepare_update(new, old, cx);
    scope.canonicalize(new);

    if scope.resource.has_generation && scope.strategy.counts_generation(new, old, part) {
        new.meta_mut().set_generation(old.meta().generation() + 1);
    }

    let mut errors = FieldErrors::default();
    meta::validate_change(new, old, scope, &mut errors);
    let warnings = scope
        .strategy
        .validate_tree(new, Some(old), cx, &mut errors)?;

    if !errors.is_empty() {
        return Err(ApiError::invalid(
            scope.storage_version.kind,
            new.meta().name(),
            &errors,
        ));
    }

    scope.strategy.canonicalize(new);

    Ok(warnings)
}

/// Carries over from the old object what this part of it does not own, and what no write changes.
fn carry_over(
    scope: &Scope<'_>,
    part: Part,
    old: &Value,
    wanted: &mut Value,
) -> Result<(), ApiError> {
    let (Some(new), Some(before)) = (wanted.as_object_mut(), old.as_object()) else {
        return Err(ApiError::bad_request("the object is not an object"));
    };
    match part {
        Part::Main if scope.has_status() => carry(new, before, "status"),
        Part::Status => {
            let names: Vec<String> = before
                .keys()
                .chain(new.keys())
                .map(str::to_string)
                .collect();

            for name in names
                .iter()
                .filter(|name| !matches!(name.as_str(), "status" | "metadata"))
            {
                carry(new, before, name);
            }
        }
        _ => {}
    }

    new.insert("apiVersion", scope.storage_version.kind.api_version());
    new.insert("kind", scope.storage_version.kind.name.clone());
    let metadata = new.object_mut("metadata");
    let empty = Map::new();
    let old_metadata = before
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&empty);

    for name in ["creationTimestamp", "generation", "selfLink"] {
        carry(metadata, old_metadata, name);
    }

    // These are kept once they are set; setting them is validated as a change of metadata.
    for name in ["deletionGracePeriodSeconds", "deletionTimestamp", "uid"] {
        if old_metadata.contains_key(name)
            && (name == "deletionTimestamp" || !metadata.contains_key(name))
        {
            carry(metadata, old_metadata, name);
        }
    }

    // An update without a version means the current one.
    carry(metadata, old_metadata, "resourceVersion");

    Ok(())
}

fn carry(new: &mut Map, old: &Map, name: &str) {
    match old.get(name) {
        Some(value) => new.insert(name, value.clone()),
        None => new.remove(name),
    };
}

pub(crate) fn store_error(error: &StoreError) -> ApiError {
    match error {
        StoreError::Invalid(InvalidRequest::TooLarge { .. }) => {
            ApiError::unexplained("etcdserver: request is too large")
        }
        StoreError::Unavailable(why) => ApiError::new(
            http::StatusCode::SERVICE_UNAVAILABLE,
            Reason::ServiceUnavailable,
            why.to_string(),
        ),
        other => ApiError::internal(other.to_string()),
    }
}
