//! What a write does to the owners of an object's fields, and what applying a configuration does to the object.
//!
//! Whoever writes a field that changes takes it from all others; applying without force refuses to. Whoever applies
//! owns exactly the fields of the configuration: what was in the last one and is not in this one is given up, and
//! removed from the object if nobody else owns it ([`prune`]).

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
    #[error("{0}")]
    Version(#[from] VersionError),
    #[error("failed to compare objects: {0}")]
    Compare(TypeErrors),
    #[error("failed to merge config: {0}")]
    Merge(TypeErrors),
}

/// What all writes of a kind have in common.
pub(super) struct Engine<'e, 'a> {
    pub(super) filters: &'e Filters,
    pub(super) convert: &'e Convert<'a>,
}

/// Who is asking: a manager known by name, or one that is not among the owners.
type Writer<'m> = Option<&'m Manager>;

impl<'a> Engine<'_, 'a> {
    /// The fields that a write changes, which the writer owns from now on. Everybody else has lost them.
    pub(super) fn update(
        &self,
        live: &Typed<'_, 'a>,
        new: &Typed<'_, 'a>,
        owners: &mut Owners,
    ) -> Result<Set, EngineError> {
        self.reconcile(live, owners)?;
        let comparison = self.hand_over(live, new, owners, None, true)?;
        Ok(filtered(comparison.changed(), self.filters, &new.version))
    }

    /// The object with a configuration applied, if it is another than before. The owners are those after it.
    pub(super) fn apply(
        &self,
        live: &Typed<'_, 'a>,
        config: &Typed<'_, 'a>,
        owners: &mut Owners,
        manager: &Manager,
        force: bool,
    ) -> Result<Option<Value>, EngineError> {
        self.reconcile(live, owners)?;
        let merged = walk::merge(&live.value, &config.value, live.of).map_err(EngineError::Merge)?;
        let fields = walk::field_set(&config.value, config.of);
        let fields = filtered(fields, self.filters, &config.version);
        let last = owners.get(manager).cloned();
        let time = last.as_ref().and_then(|last| last.time);
        owners.set(Owner { manager: manager.clone(), time, fields });
        let new = match last.filter(|last| !last.fields.is_empty()) {
            Some(last) => self.prune(&live.with(merged), owners, &last, &config.version)?,
            None => live.with(merged),
        };
        self.hand_over(live, &new, owners, Some(manager), force)?;
        if order::same(&live.value, &new.value) { Ok(None) } else { Ok(Some(new.value.into_owned())) }
    }

    /// Takes what changes from everybody but the writer, and what is gone too.
    fn hand_over(
        &self,
        live: &Typed<'_, 'a>,
        new: &Typed<'_, 'a>,
        owners: &mut Owners,
        writer: Writer<'_>,
        force: bool,
    ) -> Result<Comparison, EngineError> {
        let mut comparisons = Comparisons { engine: self, live, new, known: HashMap::new() };
        let own = comparisons.in_version(&new.version)?.cloned().unwrap_or_default();
        let mut left = Vec::with_capacity(owners.0.len());
        let mut conflicts = Conflicts::default();
        for mut owner in std::mem::take(&mut owners.0) {
            if writer.is_some_and(|writer| owner.manager.is(writer)) {
                left.push(owner);
                continue;
            }
            let Some(comparison) = comparisons.in_version(&owner.manager.api_version)? else { continue };
            let taken = owner.fields.intersection(&comparison.changed());
            if !force {
                let paths = taken.paths().into_iter();
                conflicts.0.extend(paths.map(|path| Conflict { manager: owner.manager.clone(), path }));
            }
            owner.fields = owner.fields.difference(&taken).difference(&comparison.removed);
            left.push(owner);
        }
        if !conflicts.0.is_empty() {
            conflicts.sort();
            return Err(conflicts.into());
        }
        left.retain(|owner| !owner.fields.is_empty());
        owners.0 = left;
        Ok(own)
    }

    /// Brings the owners' fields in line with today's schema. Versions that are gone take their owners with them.
    fn reconcile(&self, live: &Typed<'_, 'a>, owners: &mut Owners) -> Result<(), EngineError> {
        let mut types = HashMap::new();
        for version in owners.api_versions() {
            let typed = live.in_version(&version, self.convert)?;
            types.insert(version, typed.map(|typed| typed.of));
        }
        owners.0.retain_mut(|owner| {
            let Some(of) = types.get(&owner.manager.api_version).copied().flatten() else { return false };
            if let Some(fields) = walk::reconciled(&owner.fields, of) {
                owner.fields = fields;
            }
            true
        });
        Ok(())
    }

    /// The merged object without what the manager applied last time, does not apply now, and nobody else owns.
    fn prune(
        &self,
        merged: &Typed<'_, 'a>,
        owners: &Owners,
        last: &Owner,
        version: &str,
    ) -> Result<Typed<'static, 'a>, EngineError> {
        let unchanged = || merged.with(merged.value.clone().into_owned());
        let last_version = &last.manager.api_version;
        let Some(at_last) = merged.in_version(last_version, self.convert)? else { return Ok(unchanged()) };
        let last_fields = walk::with_named_fields(&last.fields, Some(at_last.of));
        let pruned = at_last.with(walk::remove(&at_last.value, &last_fields, at_last.of));
        let pruned = self.with_owned(&at_last, pruned, owners)?;
        let Some(pruned) = pruned.in_version(last_version, self.convert)? else { return Ok(unchanged()) };
        // Nothing goes but what the manager had applied: not what nobody owns, nor what somebody updated.
        let gone = named_fields(&at_last).difference(&named_fields(&pruned)).intersection(&last_fields);
        let pruned = at_last.with(walk::remove(&at_last.value, &gone, at_last.of));
        match pruned.in_version(version, self.convert)? {
            Some(pruned) => Ok(pruned.with(pruned.value.clone().into_owned())),
            None => Ok(unchanged()),
        }
    }

    /// Puts back what pruning took though somebody owns it. The version in which was pruned comes first: what is owned
    /// there may be needed to convert the object to others.
    fn with_owned(
        &self,
        merged: &Typed<'_, 'a>,
        pruned: Typed<'static, 'a>,
        owners: &Owners,
    ) -> Result<Typed<'static, 'a>, EngineError> {
        let mut versions = owners.api_versions();
        versions.sort_by_key(|version| *version != merged.version);
        let mut pruned = pruned;
        for version in versions {
            let Some(merged) = merged.in_version(&version, self.convert)? else { continue };
            let Some(here) = pruned.in_version(&version, self.convert)? else { continue };
            let owned = owners.iter().filter(|owner| owner.manager.api_version == version);
            let owned = owned.fold(Set::new(), |all, owner| all.union(&owner.fields));
            let kept = named_fields(&here).union(&walk::with_named_fields(&owned, Some(merged.of)));
            let gone = named_fields(&merged).difference(&kept);
            pruned = merged.with(walk::remove(&merged.value, &gone, merged.of));
        }
        Ok(pruned)
    }
}

/// All fields of an object, with the fields of structs that lead to them.
fn named_fields(object: &Typed<'_, '_>) -> Set {
    walk::with_named_fields(&walk::field_set(&object.value, object.of), Some(object.of))
}

/// The differences between two objects in several versions, each told once.
struct Comparisons<'c, 'e, 'a, 'v> {
    engine: &'c Engine<'e, 'a>,
    live: &'c Typed<'v, 'a>,
    new: &'c Typed<'v, 'a>,
    known: HashMap<Text, Option<Comparison>>,
}

impl Comparisons<'_, '_, '_, '_> {
    fn in_version(&mut self, version: &Text) -> Result<Option<&Comparison>, EngineError> {
        if !self.known.contains_key(version) {
            let comparison = self.compare(version)?;
            self.known.insert(version.clone(), comparison);
        }
        Ok(self.known[version].as_ref())
    }

    fn compare(&self, version: &Text) -> Result<Option<Comparison>, EngineError> {
        let Some(live) = self.live.in_version(version, self.engine.convert)? else { return Ok(None) };
        let Some(new) = self.new.in_version(version, self.engine.convert)? else { return Ok(None) };
        let comparison = walk::compare(&live.value, &new.value, live.of).map_err(EngineError::Compare)?;
        Ok(Some(comparison.map(|set| filtered(set, self.engine.filters, version))))
    }
}
