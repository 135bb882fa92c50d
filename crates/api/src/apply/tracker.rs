//! Tracks field ownership through a write or an applied configuration.
//!
//! A request handler creates one [`Tracker`] per request: it knows the kind, the version and
//! subresource of the request, and which fields the strategy resets. [`Tracker::update`] serves
//! create, update and patch: it sets the `managedFields` of the new object. [`Tracker::apply`]
//! computes the new object from the live one and a configuration; defaulting and validation come
//! after it. Time is passed in.

use super::engine::{Engine, EngineError};
use super::filter::Filters;
use super::last_applied;
use super::owners::{Conflicts, EntryError, Form, Manager, Operation, Owner, Owners, untracked};
use super::types::Type;
use super::version::{Conversion, Convert, Typed};
use super::walk::{Duplicates, TypeErrors, validate, validate_beside};
use crate::catalog::split_api_version;
use crate::time::Timestamp;
use crate::{Text, Value};

/// The manager of what existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager of requests that name none.
const UNKNOWN: &str = "unknown";

/// Tracks ownership for objects of one kind, for requests in one version and to one subresource.
#[derive(Clone, Copy)]
pub struct Tracker<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// The type of the objects, in the version of the request.
    pub of: Type<'a>,
    /// What the strategy resets, for each version.
    pub filters: &'a Filters,
    /// Converts objects to other versions.
    pub convert: &'a Convert<'a>,
}

/// For kinds with a single version: there is no other.
pub fn only_version<'a>(_: &Value, _: &str) -> Conversion<'a> {
    Conversion::NoSuchVersion
}

/// Why a write could not be tracked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    #[error("failed to convert new object ({object}) to smd typed: {errors}")]
    New { object: String, errors: TypeErrors },
    #[error("failed to convert live object ({object}) to smd typed: {errors}")]
    Live { object: String, errors: TypeErrors },
    #[error("failed to update ManagedFields ({object}): {source}")]
    Engine { object: String, source: EngineError },
}

/// Why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own what would change: 409.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration is of another kind or version than the request: 400.
    #[error("invalid object type: {0}")]
    Kind(String),
    /// The configuration has managedFields: 400.
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The configuration does not match its type: 500, as upstream returns.
    #[error("failed to create typed patch object ({object}): {errors}")]
    Config { object: String, errors: TypeErrors },
    #[error("failed to create typed live object ({object}): {errors}")]
    Live { object: String, errors: TypeErrors },
    #[error("failed to decode managed fields: {0}")]
    Entries(#[from] EntryError),
    #[error("failed to create manager for existing fields: {0}")]
    BeforeFirstApply(UpdateError),
    #[error("{0}")]
    Engine(EngineError),
}

impl From<EngineError> for ApplyError {
    fn from(error: EngineError) -> ApplyError {
        match error {
            EngineError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
            other => ApplyError::Engine(other),
        }
    }
}

impl<'a> Tracker<'a> {
    /// The new object with its owners, after a create (`live` is `None`), an update or a patch.
    /// Both objects are in the version of the request. Owners given in the new object count if they
    /// are valid: `[]` resets them; missing or invalid ones leave them as they were. So pass the
    /// object as it was decoded, before empty lists are removed from it.
    pub fn update(
        &self,
        live: Option<&Value>,
        mut new: Value,
        manager: &str,
        now: Timestamp,
    ) -> Result<Value, UpdateError> {
        self.update_in_place(live, &mut new, manager, now)?;
        Ok(new)
    }

    /// As [`Tracker::update`]; a write that cannot be tracked has no owners. A write does not fail
    /// because of its owners.
    pub fn update_or_forget(
        &self,
        live: Option<&Value>,
        mut new: Value,
        manager: &str,
        now: Timestamp,
    ) -> Value {
        if self.update_in_place(live, &mut new, manager, now).is_err() {
            remove_entries(&mut new);
        }
        new
    }

    /// Changes only the owners of the new object.
    fn update_in_place(
        &self,
        live: Option<&Value>,
        new: &mut Value,
        manager: &str,
        now: Timestamp,
    ) -> Result<(), UpdateError> {
        let mut owners = self.owners_after(live, new);
        remove_entries(new);
        // Ownership was reset and nothing has been applied since: tracking begins again with the
        // first apply.
        let untracked = owners.is_empty() && live.is_some_and(|live| !live.meta().uid().is_empty());
        if !untracked {
            let empty = self.empty();
            self.track(live.unwrap_or(&empty), new, &mut owners, manager, now)?;
        }
        owners.encode(new, self.form());
        Ok(())
    }

    /// The live object (`None`: there is none yet) with a configuration applied, and its owners
    /// after that. The configuration is the tree of the request's body, decoded without a type. An
    /// object that does not change keeps the times of its entries.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<Value, ApplyError> {
        self.check_kind(config)?;
        let empty = self.empty();
        let live = live.unwrap_or(&empty);

        let applied = self.apply_to(live, config, Owners::decode(live)?, manager, force, now);
        let (mut object, owners) = match applied {
            Err(ApplyError::Conflicts(conflicts)) if manager == last_applied::KUBECTL => {
                self.take_over_from_client_side(live, config, conflicts, now)?
            }
            other => other?,
        };

        if manager == last_applied::KUBECTL {
            last_applied::refresh(&mut object, config);
        }

        owners.encode(&mut object, self.form());

        Ok(object)
    }

    /// Lets kubectl take over fields that it applied client-side.
    fn take_over_from_client_side(
        &self,
        live: &Value,
        config: &Value,
        conflicts: Conflicts,
        now: Timestamp,
    ) -> Result<(Value, Owners), ApplyError> {
        let Some(own) = last_applied::unchanged_fields(live, self.of, self.api_version, self.kind)
        else {
            return Err(ApplyError::Conflicts(conflicts));
        };

        if conflicts.may_be_cut() {
            return Err(ApplyError::Conflicts(conflicts));
        }

        let others: Vec<_> = conflicts
            .0
            .into_iter()
            .filter(|conflict| !own.has(&conflict.path.0))
            .collect();

        if !others.is_empty() {
            return Err(ApplyError::Conflicts(Conflicts(others)));
        }

        self.apply_to(
            live,
            config,
            Owners::decode(live)?,
            last_applied::KUBECTL,
            true,
            now,
        )
    }

    fn apply_to(
        &self,
        live: &Value,
        config: &Value,
        mut owners: Owners,
        name: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<(Value, Owners), ApplyError> {
        if owners.is_empty() {
            self.track(&self.empty(), live, &mut owners, BEFORE_FIRST_APPLY, now)
                .map_err(ApplyError::BeforeFirstApply)?;
        }

        if config
            .at(&["metadata", "managedFields"])
            .is_some_and(|entries| !entries.is_null())
        {
            return Err(ApplyError::ManagedFields);
        }

        validate(config, self.of, Duplicates::Refused).map_err(|errors| ApplyError::Config {
            object: described(config),
            errors,
        })?;

        validate(live, self.of, Duplicates::Allowed).map_err(|errors| ApplyError::Live {
            object: described(live),
            errors,
        })?;

        let manager = self.manager(name, Operation::Apply);
        let last_time = owners.get(&manager).and_then(|owner| owner.time);
        let applied = self.engine().apply(
            &self.typed(live),
            &self.typed(config),
            &mut owners,
            &manager,
            force,
        )?;

        if let Some(mut owner) = owners.take(&manager) {
            owner.fields = owner.fields.difference(untracked());
            owner.time = if applied.is_some() {
                Some(now)
            } else {
                last_time
            };

            if !owner.fields.is_empty() {
                owners.set(owner);
            }
        }

        Ok((applied.unwrap_or_else(|| live.clone()), owners))
    }

    /// Assigns the fields that differ to the manager of a write.
    fn track(
        &self,
        live: &Value,
        new: &Value,
        owners: &mut Owners,
        name: &str,
        now: Timestamp,
    ) -> Result<(), UpdateError> {
        validate(new, self.of, Duplicates::Allowed).map_err(|errors| UpdateError::New {
            object: described(new),
            errors,
        })?;

        validate_beside(live, new, self.of, Duplicates::Allowed).map_err(|errors| {
            UpdateError::Live {
                object: described(live),
                errors,
            }
        })?;

        let changed = self
            .engine()
            .update(&self.typed(live), &self.typed(new), owners)
            .map_err(|source| UpdateError::Engine {
                object: described(new),
                source,
            })?;

        let changed = changed.difference(untracked());
        if !changed.is_empty() {
            let manager = self.manager(name, Operation::Update);
            let fields = match owners.get(&manager) {
                Some(before) => changed.union(&before.fields),
                None => changed,
            };

            owners.set(Owner {
                manager,
                time: Some(now),
                fields,
            });
        }

        owners.cap_updaters();

        Ok(())
    }

    /// The owners before a write.
    fn owners_after(&self, live: Option<&Value>, new: &Value) -> Owners {
        let of_live = || {
            live.and_then(|live| Owners::decode(live).ok())
                .unwrap_or_default()
        };

        // Owners cannot be set through a subresource.
        if !self.subresource.is_empty() {
            return of_live();
        }
        if Owners::are_reset(new) {
            return Owners::default();
        }

        match Owners::decode(new) {
            Ok(owners) if !owners.is_empty() => owners,
            // A client that does not know managedFields does not mean to remove them.
            _ => of_live(),
        }
    }

    fn check_kind(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") == self.api_version && text("kind") == self.kind {
            return Ok(());
        }
        Err(ApplyError::Kind(kind_text(config)))
    }

    fn manager(&self, name: &str, operation: Operation) -> Manager {
        Manager {
            name: Text::new(if name.is_empty() { UNKNOWN } else { name }),
            operation,
            api_version: Text::new(self.api_version),
            subresource: Text::new(self.subresource),
        }
    }

    /// An object that does not exist yet.
    fn empty(&self) -> Value {
        let mut empty = match self.of {
            Type::Catalogue(catalogue) => catalogue.empty(),
            _ => Value::object(),
        };
        if let Some(members) = empty.as_object_mut() {
            members.insert("apiVersion", self.api_version);
            members.insert("kind", self.kind);
        }
        empty
    }

    fn form(&self) -> Form {
        if matches!(self.of, Type::Catalogue(_)) {
            Form::Text
        } else {
            Form::Tree
        }
    }

    fn engine(&self) -> Engine<'a, 'a> {
        Engine {
            filters: self.filters,
            convert: self.convert,
        }
    }

    fn typed<'v>(&self, value: &'v Value) -> Typed<'v, 'a> {
        Typed::new(value, self.of, self.api_version)
    }
}

fn remove_entries(object: &mut Value) {
    if let Some(metadata) = object
        .as_object_mut()
        .and_then(|object| object.get_mut("metadata"))
        && let Some(members) = metadata.as_object_mut()
    {
        members.remove("managedFields");
    }
}

/// An object as messages identify it: `default/web; apps/v1, Kind=Deployment`.
fn described(object: &Value) -> String {
    let meta = object.meta();
    format!(
        "{}/{}; {}",
        meta.namespace(),
        meta.name(),
        kind_text(object)
    )
}

fn kind_text(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = split_api_version(text("apiVersion"));
    format!("{group}/{version}, Kind={}", text("kind"))
}
