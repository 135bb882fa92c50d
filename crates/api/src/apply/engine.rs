//! Computes field ownership after a write, and the object that results from applying a
//! configuration.
//!
//! A writer that changes a field takes it from all other managers; applying without force is a
//! conflict instead. An applier owns exactly the fields of its configuration: fields of its
//! previous configuration that this one leaves out are given up, and removed from the object if no
//! other manager owns them ([`prune`]).

use std::borrow::Cow;
use std::collections::HashMap;

use super::filter::{Filters, filtered};
use super::order;
use super::owners::{Conflict, Conflicts, Manager, Owner, Owners};
use super::set::Set;
use super::version::{Convert, Typed, VersionError};
use super::walk::{self, Comparison, TypeErrors};
use crate::{Text, Value};

/// Why ownership could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Conflicts(#[from] Conflicts),
    /// Ownership could not be adapted to the current schema.
    #[error("{0}")]
    Reconcile(VersionError),
    #[error("failed to convert old object: {0}")]
    Old(VersionError),
    #[error("failed to convert new object: {0}")]
    New(VersionError),
    #[error("failed to prune fields: {0}")]
    Prune(#[from] PruneError),
    #[error("failed to compare objects: {0}")]
    Compare(TypeErrors),
    #[error("failed to merge config: {0}")]
    Merge(TypeErrors),
}

/// Why pruning failed: the object could not be converted to a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PruneError {
    #[error("failed to convert merged object to last applied version: {0}")]
    Merged(VersionError),
    #[error(
        "failed add back owned items: failed to convert merged object at version {version}: {error}"
    )]
    OwnedMerged { version: Text, error: VersionError },
    #[error(
        "failed add back owned items: failed to convert pruned object at version {version}: {error}"
    )]
    OwnedPruned { version: Text, error: VersionError },
    #[error(
        "failed add back dangling items: failed to convert pruned object to last applied version: {0}"
    )]
    Dangling(VersionError),
    #[error("{0}")]
    Pruned(VersionError),
}

/// What all writes of a kind have in common.
pub(super) struct Engine<'e, 'a> {
    pub(super) filters: &'e Filters,
    pub(super) convert: &'e Convert<'a>,
}

/// The manager that writes; `None` if it is not among the owners.
type Writer<'m> = Option<&'m Manager>;

impl<'a> Engine<'_, 'a> {
    /// Returns the fields that a write changes, which the writer owns from now on, and removes them
    /// from all other managers.
    pub(super) fn update(
        &self,
        live: &Typed<'_, 'a>,
        new: &Typed<'_, 'a>,
        owners: &mut Owners,
    ) -> Result<Set, EngineError> {
        self.reconcile(live, owners)?;
        self.transfer_ownership(live, new, owners, None, true)
    }

    /// Returns the object with a configuration applied, if that changes it. Updates `owners`.
    pub(super) fn apply(
        &self,
        live: &Typed<'_, 'a>,
        config: &Typed<'_, 'a>,
        owners: &mut Owners,
        manager: &Manager,
        force: bool,
    ) -> Result<Option<Value>, EngineError> {
        self.reconcile(live, owners)?;
        let merged =
            walk::merge(&live.value, &config.value, live.of).map_err(EngineError::Merge)?;
        let fields = walk::field_set(&config.value, config.of);
        let fields = filtered(fields, self.filters, &config.version);
        let last = owners.get(manager).cloned();

        let time = last.as_ref().and_then(|last| last.time);
        owners.set(Owner {
            manager: manager.clone(),
            time,
            fields,
        });

        let new = match last.filter(|last| !keeps_all(last, owners, manager, config)) {
            Some(last) => self.prune(&live.with(merged), owners, &last, &config.version)?,
            None => live.with(merged),
        };
        self.transfer_ownership(live, &new, owners, Some(manager), force)?;

        if order::same(&live.value, &new.value) {
            Ok(None)
        } else {
            Ok(Some(new.value.into_owned()))
        }
    }

    /// Removes changed and removed fields from all managers but the writer. Returns the changed
    /// fields.
    fn transfer_ownership(
        &self,
        live: &Typed<'_, 'a>,
        new: &Typed<'_, 'a>,
        owners: &mut Owners,
        writer: Writer<'_>,
        force: bool,
    ) -> Result<Set, EngineError> {
        let mut comparisons = Comparisons {
            engine: self,
            live,
            new,
            known: HashMap::new(),
        };
        comparisons.in_version(&new.version)?;

        let mut left = Vec::with_capacity(owners.0.len());
        let mut conflicts = Conflicts::default();

        let mut left_to_say = Conflicts::MOST_BYTES;
        for mut owner in std::mem::take(&mut owners.0) {
            if writer.is_some_and(|writer| owner.manager.is(writer)) {
                left.push(owner);
                continue;
            }

            let Some(changes) = comparisons.in_version(&owner.manager.api_version)? else {
                continue;
            };

            let taken = owner.fields.intersection(&changes.changed);
            if !force {
                let paths = taken.paths_within(&mut left_to_say).into_iter();
                conflicts.0.extend(paths.map(|path| Conflict {
                    manager: owner.manager.clone(),
                    path,
                }));
            }

            if !taken.is_empty() {
                owner.fields = owner.fields.difference(&taken);
            }
            if !changes.removed.is_empty() {
                owner.fields = owner.fields.difference(&changes.removed);
            }

            left.push(owner);
        }

        if !conflicts.0.is_empty() {
            conflicts.sort();
            return Err(conflicts.into());
        }

        left.retain(|owner| !owner.fields.is_empty());
        owners.0 = left;
        let own = comparisons.known.remove(&new.version).flatten();

        Ok(own.map(|own| own.changed).unwrap_or_default())
    }

    /// Adapts the owners' field sets to the current schema. Owners in versions that no longer exist
    /// are dropped.
    fn reconcile(&self, live: &Typed<'_, 'a>, owners: &mut Owners) -> Result<(), EngineError> {
        let mut types = HashMap::new();
        for version in owners.api_versions() {
            let typed = live
                .in_version(&version, self.convert)
                .map_err(EngineError::Reconcile)?;
            types.insert(version, typed.map(|typed| typed.of));
        }

        owners.0.retain_mut(|owner| {
            let Some(of) = types.get(&owner.manager.api_version).copied().flatten() else {
                return false;
            };
            if let Some(fields) = walk::reconciled(&owner.fields, of) {
                owner.fields = fields;
            }
            true
        });

        Ok(())
    }

    /// The merged object without the fields that the manager applied last time, does not apply now,
    /// and no other manager owns.
    fn prune(
        &self,
        merged: &Typed<'_, 'a>,
        owners: &Owners,
        last: &Owner,
        version: &str,
    ) -> Result<Typed<'static, 'a>, PruneError> {
        let unchanged = || merged.with(merged.value.clone().into_owned());
        let last_version = &last.manager.api_version;
        let in_last =
            |object: &Typed<'_, 'a>| object.in_version(last_version, self.convert).map(owned);
        let Some(merged) = in_last(merged).map_err(PruneError::Merged)? else {
            return Ok(unchanged());
        };
        let fields = named_fields(&merged);

        let last_fields = walk::with_named_fields(&last.fields, Some(merged.of));
        let pruned = merged.with(walk::remove(&merged.value, &last_fields, merged.of));
        let pruned = self.with_owned(&merged, &fields, pruned, owners)?;
        let Some(pruned) = in_last(&pruned).map_err(PruneError::Dangling)? else {
            return Ok(unchanged());
        };

        // Only what the manager had applied is removed: neither unowned fields nor fields owned by
        // an update.
        let gone = fields
            .difference(&named_fields(&pruned))
            .intersection(&last_fields);
        let pruned = merged.with(walk::remove(&merged.value, &gone, merged.of));
        let pruned = pruned
            .in_version(version, self.convert)
            .map_err(PruneError::Pruned)?;

        Ok(owned(pruned).unwrap_or_else(unchanged))
    }

    /// Restores what pruning removed although it is owned. The pruned version comes first: what is
    /// owned there may be needed to convert the object to others.
    fn with_owned(
        &self,
        merged: &Typed<'_, 'a>,
        fields: &Set,
        mut pruned: Typed<'static, 'a>,
        owners: &Owners,
    ) -> Result<Typed<'static, 'a>, PruneError> {
        let mut versions = owners.api_versions();
        versions.sort_by_key(|version| *version != merged.version);

        for version in versions {
            let no_merged = |error| PruneError::OwnedMerged {
                version: version.clone(),
                error,
            };

            let no_pruned = |error| PruneError::OwnedPruned {
                version: version.clone(),
                error,
            };

            let Some(here) = merged
                .in_version(&version, self.convert)
                .map_err(no_merged)?
            else {
                continue;
            };

            let left = pruned
                .in_version(&version, self.convert)
                .map_err(no_pruned)?;
            let Some(left) = left else { continue };
            let owners = owners
                .iter()
                .filter(|owner| owner.manager.api_version == version);
            let owned = owners.fold(Set::new(), |all, owner| all.union(&owner.fields));

            let kept = named_fields(&left).union(&walk::with_named_fields(&owned, Some(here.of)));
            let gone = if version == merged.version {
                fields.difference(&kept)
            } else {
                named_fields(&here).difference(&kept)
            };
            pruned = here.with(walk::remove(&here.value, &gone, here.of));
        }

        Ok(pruned)
    }
}

/// A converted object that owns its value.
fn owned<'a>(object: Option<Typed<'_, 'a>>) -> Option<Typed<'static, 'a>> {
    object.map(|object| Typed {
        value: Cow::Owned(object.value.into_owned()),
        of: object.of,
        version: object.version,
    })
}

/// Whether a configuration gives up no field, the usual case: then there is nothing to prune. With
/// a null in both configurations, fields below it may still be removed.
fn keeps_all(last: &Owner, owners: &Owners, manager: &Manager, config: &Typed<'_, '_>) -> bool {
    let kept = |now: &Owner| last.fields.difference(&now.fields).is_empty();
    last.fields.is_empty()
        || last.manager.api_version == config.version
            && owners.get(manager).is_some_and(kept)
            && !has_null(&config.value)
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null | Value::Raw(_) => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

/// All fields of an object, with the struct fields on the way to them.
fn named_fields(object: &Typed<'_, '_>) -> Set {
    walk::with_named_fields(&walk::field_set(&object.value, object.of), Some(object.of))
}

/// The fields that a write changes, in one version.
struct Changes {
    removed: Set,
    /// Fields that are new or have another value.
    changed: Set,
}

/// The differences between two objects, computed once for each version.
struct Comparisons<'c, 'e, 'a, 'v> {
    engine: &'c Engine<'e, 'a>,
    live: &'c Typed<'v, 'a>,
    new: &'c Typed<'v, 'a>,
    known: HashMap<Text, Option<Changes>>,
}

impl Comparisons<'_, '_, '_, '_> {
    fn in_version(&mut self, version: &Text) -> Result<Option<&Changes>, EngineError> {
        if !self.known.contains_key(version) {
            let comparison = self.compare(version)?;
            self.known.insert(version.clone(), comparison);
        }
        Ok(self.known[version].as_ref())
    }

    fn compare(&self, version: &Text) -> Result<Option<Changes>, EngineError> {
        let live = self
            .live
            .in_version(version, self.engine.convert)
            .map_err(EngineError::Old)?;
        let Some(live) = live else { return Ok(None) };

        let new = self
            .new
            .in_version(version, self.engine.convert)
            .map_err(EngineError::New)?;

        let Some(new) = new else { return Ok(None) };
        let Comparison {
            removed,
            modified,
            added,
        } = walk::compare(&live.value, &new.value, live.of).map_err(EngineError::Compare)?;

        let changed = if modified.is_empty() {
            added
        } else {
            modified.union(&added)
        };

        let filtered = |set| filtered(set, self.engine.filters, version);
        Ok(Some(Changes {
            removed: filtered(removed),
            changed: filtered(changed),
        }))
    }
}
