//! What a write does to the owners of an object's fields, and what applying a configuration does to
//! the object.
//!
//! Whoever writes a field that changes takes it from all others; applying without force refuses to.
//! Whoever applies owns exactly the fields of the configuration: what was in the last one and is
//! not in this one is given up, and removed from the object if nobody else owns it ([`prune`]).

use std::borrow::Cow;
use std::collections::HashMap;

use super::filter::{Filters, filtered};
use super::order;
use super::owners::{Conflict, Conflicts, Manager, Owner, Owners};
use super::set::Set;
use super::version::{Convert, Typed, VersionError};
use super::walk::{self, Comparison, TypeErrors};
use crate::{Text, Value};

/// Why owners could not be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Conflicts(#[from] Conflicts),
    /// Owners could not be brought in line with the schema.
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

/// Why nothing could be pruned: an object could not be had in a version.
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

/// Who is asking: a manager known by name, or one that is not among the owners.
type Writer<'m> = Option<&'m Manager>;

impl<'a> Engine<'_, 'a> {
    /// The fields that a write changes, which the writer owns from now on. Everybody else has lost
    /// them.
    pub(super) fn update(
        &self,
        live: &Typed<'_, 'a>,
        new: &Typed<'_, 'a>,
        owners: &mut Owners,
    ) -> Result<Set, EngineError> {
        self.reconcile(live, owners)?;
        self.hand_over(live, new, owners, None, true)
    }

    /// The object with a configuration applied, if it is another than before. The owners are those
    /// after it.
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
        self.hand_over(live, &new, owners, Some(manager), force)?;

        if order::same(&live.value, &new.value) {
            Ok(None)
        } else {
            Ok(Some(new.value.into_owned()))
        }
    }

    /// Takes what changes from everybody but the writer, and what is gone too. What changes is the
    /// answer.
    fn hand_over(
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

    /// Brings the owners' fields in line with today's schema. Versions that are gone take their
    /// owners with them.
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

    /// The merged object without what the manager applied last time, does not apply now, and nobody
    /// else owns.
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

        // Nothing goes but what the manager had applied: not what nobody owns, nor what somebody
        // updated.
        let gone = fields
            .difference(&named_fields(&pruned))
            .intersection(&last_fields);
        let pruned = merged.with(walk::remove(&merged.value, &gone, merged.of));
        let pruned = pruned
            .in_version(version, self.convert)
            .map_err(PruneError::Pruned)?;

        Ok(owned(pruned).unwrap_or_else(unchanged))
    }

    /// Puts back what pruning took though somebody owns it. The version in which was pruned comes
    /// first: what is owned there may be needed to convert the object to others.
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

/// A converted object of its own.
fn owned<'a>(object: Option<Typed<'_, 'a>>) -> Option<Typed<'static, 'a>> {
    object.map(|object| Typed {
        value: Cow::Owned(object.value.into_owned()),
        of: object.of,
        version: object.version,
    })
}

/// Whether a configuration gives nothing up, as most do: then there is nothing to prune. A null
/// could be in both, and yet what is below it goes.
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

/// All fields of an object, with the fields of structs that lead to them.
fn named_fields(object: &Typed<'_, '_>) -> Set {
    walk::with_named_fields(&walk::field_set(&object.value, object.of), Some(object.of))
}

/// The fields that a write changes, in one version.
struct Changes {
    removed: Set,
    /// What is new or another than before.
    changed: Set,
}

/// The differences between two objects in several versions, each told once.
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
