//! Delete: at once, or by setting a deletion timestamp first.
//!
//! An object without finalizers and grace period is removed in one step. Otherwise its deletion
//! timestamp is set, and the update that removes the last finalizer or ends the grace period
//! removes it. [`plan`] decides which it is, from the object and the options alone.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_kinds::Grace;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Part, Registry, Scope, Write};
use crate::ApiError;
use crate::admission::{Attributes, Notes, Operation, Options, Warnings};
use crate::cache::Entry;
use crate::request::{DeleteOptions, ListOptions, Propagation, VersionMatch};
use crate::status::Reason;

/// What became of a delete.
pub enum Deleted {
    /// It is removed; the client gets a Status.
    Gone(Arc<Entry>),
    /// It is removed, and the client gets its last version.
    Shown(Arc<Entry>),
    /// Its deletion timestamp is set; it waits for finalizers or its grace period.
    Pending(Arc<Entry>),
}

/// How many objects of a collection are being deleted at a time.
const DELETED_AT_ONCE: usize = 32;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The steps of a delete.
#[derive(Debug, PartialEq)]
enum Plan {
    /// It was requested before, and nothing changes.
    Nothing,
    /// It is removed.
    Remove,
    /// It is written with its deletion timestamp, and removed later.
    Mark(Value),
    /// It is written with its deletion timestamp, for watchers to see, and then removed.
    MarkAndRemove(Value),
}

/// How admission is asked about a delete.
#[derive(Clone, Copy)]
pub enum DeleteAdmission<'a> {
    /// About the object of this name: none for the objects of a collection.
    As(&'a str, &'a Warnings),
    /// Not at all: it was asked about what led to the delete.
    Not,
}

impl Registry {
    /// Deletes an object. Warnings of admission are left in `warnings`, also if it refuses.
    pub async fn delete(
        &self,
        scope: &Scope<'_>,
        name: &str,
        options: &DeleteOptions,
        warnings: &Warnings,
    ) -> Result<Deleted, ApiError> {
        self.delete_with(scope, name, options, DeleteAdmission::As(name, warnings))
            .await
    }

    pub(super) async fn delete_with(
        &self,
        scope: &Scope<'_>,
        name: &str,
        options: &DeleteOptions,
        asked: DeleteAdmission<'_>,
    ) -> Result<Deleted, ApiError> {
        if let Some(why) = scope.strategy.never_deleted(name) {
            return Err(ApiError::forbidden(scope.resource, name, why));
        }

        let write = Write::new(self, scope, Part::Main, options.dry_run);

        loop {
            let current = self.current(scope, name).await?;
            match self
                .try_delete(&write, name, &current, options, asked)
                .await
            {
                // It was changed concurrently: the new version is checked again, preconditions
                // included.
                Err(error)
                    if error.reason == Reason::Conflict && self.is_newer(scope, name, &current) => {
                }
                result => return result,
            }
        }
    }

    fn is_newer(&self, scope: &Scope<'_>, name: &str, seen: &Entry) -> bool {
        self.get(scope, name)
            .map_or(true, |now| now.revision != seen.revision)
    }

    /// Whether a removal failed because there is nothing left to remove.
    fn is_gone(&self, scope: &Scope<'_>, name: &str, error: &ApiError) -> bool {
        error.code == http::StatusCode::NOT_FOUND
            || error.reason == Reason::Conflict && self.get(scope, name).is_err()
    }

    async fn try_delete(
        &self,
        write: &Write<'_>,
        name: &str,
        current: &Arc<Entry>,
        options: &DeleteOptions,
        asked: DeleteAdmission<'_>,
    ) -> Result<Deleted, ApiError> {
        let (scope, cx) = (write.scope, &write.cx);
        let object = self.caches.trees.whole(current, scope.storage_version.of);
        check_preconditions(scope, name, &object, options)?;

        let plan = plan(&object, scope, options, cx.now);
        if plan != Plan::Nothing {
            self.admit_delete(write, &object, options, asked).await?;
        }

        let (last, was_marked) = match plan {
            Plan::Nothing => return Ok(Deleted::Pending(current.clone())),
            Plan::Mark(marked) => {
                return Ok(Deleted::Pending(
                    self.mark(scope, name, current, marked, cx.dry_run).await?,
                ));
            }
            Plan::Remove => (current.clone(), false),
            Plan::MarkAndRemove(marked) => (
                self.mark(scope, name, current, marked, cx.dry_run).await?,
                true,
            ),
        };

        let gone = match cx.dry_run {
            true => last,
            false => match self
                .remove_now(write, name, &last, &last.value(scope.storage_version.of))
                .await
            {
                // A client that waited for the deletion timestamp (a kubelet whose pod has ended)
                // may have removed it already.
                Err(error) if was_marked && self.is_gone(scope, name, &error) => last,
                removed => removed?,
            },
        };

        Ok(match scope.resource.returns_deleted {
            true => Deleted::Shown(gone),
            false => Deleted::Gone(gone),
        })
    }

    /// Asks admission about a delete, with the grace period that the kind has settled.
    async fn admit_delete(
        &self,
        write: &Write<'_>,
        object: &Value,
        options: &DeleteOptions,
        asked: DeleteAdmission<'_>,
    ) -> Result<(), ApiError> {
        let DeleteAdmission::As(name, warnings) = asked else {
            return Ok(());
        };

        let grace = write.scope.strategy.grace(object, options.grace_period);
        let settled = match grace {
            Grace::Seconds(seconds) if !object.meta().is_being_deleted() => Some(seconds),
            _ => options.grace_period,
        };
        let options = DeleteOptions {
            grace_period: settled,
            ..options.clone()
        };

        let notes = Notes::default();
        let options = Options::Delete(&options);
        let attributes = Attributes {
            old: Some(object),
            ..write.attributes(Operation::Delete, options, name, &notes)
        };
        let mut nothing = Value::Null;
        let admitted = match self.admission.admit(&mut nothing, &attributes).await {
            Ok(()) => self.admission.validate(None, &attributes).await,
            refused => refused,
        };

        for warning in notes.warnings.take() {
            warnings.add(warning);
        }
        admitted
    }

    /// Writes the object with its deletion timestamp as it is: strategies do not run on a delete.
    async fn mark(
        &self,
        scope: &Scope<'_>,
        name: &str,
        current: &Arc<Entry>,
        mut marked: Value,
        dry_run: bool,
    ) -> Result<Arc<Entry>, ApiError> {
        marked.meta_mut().members().remove("resourceVersion");
        let entry = Arc::new(scope.entry(&marked));
        if entry.bytes() == current.bytes() {
            return Ok(current.clone());
        }
        if dry_run {
            return Ok(Arc::new(entry.at(current.revision)));
        }
        let written = self.replace(scope, name, current, &entry, marked).await?;
        written
            .ok_or_else(|| ApiError::conflict(scope.resource, name, "the object has been modified"))
    }

    /// Deletes what a list with these options shows; returns what was there. Admission is asked about
    /// each object.
    pub async fn delete_collection(
        &self,
        scope: &Scope<'_>,
        list: &ListOptions,
        options: &DeleteOptions,
        asked: DeleteAdmission<'_>,
    ) -> Result<super::List, ApiError> {
        // With a resource version, the objects of that version: later ones are not deleted.
        let exact =
            list.version.0 != 0 && list.version_match.is_none() && list.continue_token.is_empty();
        let version_match = if exact {
            Some(VersionMatch::Exact)
        } else {
            list.version_match
        };

        let found = self
            .list(
                scope,
                &ListOptions {
                    version_match,
                    ..list.clone()
                },
            )
            .await?;

        let delete = async |entry: &Arc<Entry>| {
            let scope = Scope {
                namespace: entry.namespace(),
                ..*scope
            };

            let name = entry.key().rsplit('/').next().unwrap_or_default();
            match self.delete_with(&scope, name, options, asked).await {
                Err(error) if error.code != http::StatusCode::NOT_FOUND => Err(error),
                _ => Ok(()),
            }
        };

        // Several at a time: the store writes them together.
        stream::iter(&found.entries)
            .map(Ok)
            .try_for_each_concurrent(DELETED_AT_ONCE, delete)
            .await?;

        Ok(found)
    }
}

fn plan(object: &Value, scope: &Scope<'_>, options: &DeleteOptions, now: Timestamp) -> Plan {
    let metadata = object.meta();
    let going = metadata.is_being_deleted();

    // Less than nothing is as short as it gets.
    let asked = options
        .grace_period
        .map(|seconds| if seconds < 0 { 1 } else { seconds });

    let lingers = metadata.deletion_grace_period_seconds().unwrap_or(0);
    let grace = match (going, asked) {
        (false, asked) => scope.strategy.grace(object, asked),
        (true, _) if lingers == 0 => Grace::None,
        // A second delete can only shorten the grace period.
        (true, Some(asked)) if asked < lingers => Grace::Seconds(asked),
        (true, _) => return Plan::Nothing,
    };

    let mut marked = object.clone();

    // Without a requested propagation, an existing finalizer for dependents stays, and the kind
    // decides where there is none.
    let decided = metadata
        .finalizers()
        .any(|name| name == ORPHAN || name == FOREGROUND);
    let by_kind = (!decided && scope.strategy.orphans_by_default()).then_some(Propagation::Orphan);
    let propagation = options.propagation.or(by_kind);

    let held = settle_finalizers(&mut marked, propagation) | scope.strategy.holds(object);
    let seconds = match grace {
        Grace::Seconds(seconds) => seconds,
        Grace::None if !held => return Plan::Remove,
        Grace::None => 0,
    };

    if !going || seconds < lingers {
        mark(&mut marked, seconds, now);
        scope.strategy.mark_deleted(&mut marked);
    }

    match grace {
        Grace::Seconds(0) if !held => Plan::MarkAndRemove(marked),
        _ => Plan::Mark(marked),
    }
}

/// Sets the deletion timestamp. The grace period of a delete that is in progress is counted from
/// its beginning, but at least one second is left.
fn mark(object: &mut Value, seconds: i64, now: Timestamp) {
    let metadata = object.meta();
    let lingers = metadata.deletion_grace_period_seconds().unwrap_or(0);

    let generation = metadata.generation();
    let (at, seconds) = match metadata.deletion_timestamp() {
        None => (now.plus_seconds(seconds), seconds),
        Some(at) => match at.plus_seconds(seconds - lingers) {
            late if late < now => (now, seconds.min(1)),
            at => (at, seconds),
        },
    };

    let first = !metadata.is_being_deleted();
    let mut metadata = object.meta_mut();
    metadata.set_deletion_timestamp(Some(at));
    metadata.set_deletion_grace_period_seconds(Some(seconds));

    if first && generation > 0 {
        metadata.set_generation(generation + 1);
    }
}

/// Sets the finalizer of the requested propagation, and removes the others; returns whether any is
/// left.
fn settle_finalizers(object: &mut Value, propagation: Option<Propagation>) -> bool {
    let wanted = match propagation {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None => return object.meta().finalizers().next().is_some(),
    };

    let mut metadata = object.meta_mut();
    for finalizer in [ORPHAN, FOREGROUND] {
        if Some(finalizer) == wanted {
            metadata.add_finalizer(finalizer);
        } else {
            metadata.remove_finalizer(finalizer);
        }
    }

    object.meta().finalizers().next().is_some()
}

impl Scope<'_> {
    /// Warnings about a delete, whatever its result.
    pub fn delete_notices(&self, options: &DeleteOptions) -> Vec<String> {
        let notice = self
            .strategy
            .delete_notice()
            .filter(|_| options.propagation.is_none());
        notice.map(str::to_string).into_iter().collect()
    }
}

/// Whether a change took away the last that held a deleted object.
pub(super) fn is_released(scope: &Scope<'_>, new: &Value, old: &Value) -> bool {
    old.meta().is_being_deleted()
        && old.meta().deletion_grace_period_seconds().unwrap_or(0) == 0
        && new.meta().finalizers().next().is_none()
        && !scope.strategy.holds(new)
}

/// Whether the object meets the preconditions.
pub(super) fn check_preconditions(
    scope: &Scope<'_>,
    name: &str,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let metadata = object.meta();
    let is_namespace = scope.resource.group.is_empty() && scope.resource.plural == "namespaces";
    let failed = |what: &str, wanted: &str, found: &str, why: &str| {
        if is_namespace {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            return Err(ApiError::conflict(scope.resource, name, &why));
        }

        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {why}"
        );
        // A delete names the kind where other refusals name the resource.
        Err(ApiError::conflict_of_kind(
            scope.storage_version.kind,
            name,
            &why,
        ))
    };

    match (&options.uid, &options.version) {
        (Some(uid), _) if uid != metadata.uid() => failed(
            "UID",
            uid,
            metadata.uid(),
            "The object might have been deleted and then recreated",
        ),
        (_, Some(version)) if version != metadata.resource_version() => {
            let found = metadata.resource_version();
            failed(
                "ResourceVersion",
                version,
                found,
                "The object might have been modified",
            )
        }
        _ => Ok(()),
    }
}
