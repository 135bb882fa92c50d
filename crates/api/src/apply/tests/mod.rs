//! Scenarios: a sequence of writes to one object, and the owners after it.

mod applying;
mod capping;
mod client_side;
mod cost;
mod custom;
mod findings;
mod updating;
mod versions;

use super::*;
use crate::codec::{canonical, json, yaml};
use crate::time::Timestamp;
use crate::{Text, Value};

pub(super) const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

/// The history of one object. Every write happens a minute after the previous one.
pub(super) struct Scenario<'a> {
    pub(super) tracker: Tracker<'a>,
    pub(super) live: Option<Value>,
    pub(super) now: Timestamp,
}

pub(super) fn tree(text: &str) -> Value {
    yaml::decode(text.as_bytes()).unwrap()
}

impl Scenario<'static> {
    /// Of a built-in kind.
    pub(super) fn of(api_version: &'static str, kind: &'static str) -> Scenario<'static> {
        let of = Type::of_kind(api_version, kind).unwrap();
        let tracker = Tracker {
            api_version,
            kind,
            subresource: "",
            of,
            filters: &[],
            convert: &only_version,
        };

        Scenario {
            tracker,
            live: None,
            now: NOON,
        }
    }
}

impl Scenario<'_> {
    pub(super) fn apply(&mut self, manager: &str, config: &str) -> Result<(), ApplyError> {
        self.apply_with(manager, config, false)
    }

    pub(super) fn force(&mut self, manager: &str, config: &str) {
        self.apply_with(manager, config, true).unwrap();
    }

    fn apply_with(&mut self, manager: &str, config: &str, force: bool) -> Result<(), ApplyError> {
        let config = self.complete(config);
        let applied = self
            .tracker
            .apply(self.live.as_ref(), &config, manager, force, self.now)?;
        self.write(applied);
        Ok(())
    }

    /// The error text of a refused configuration.
    pub(super) fn refused(&mut self, manager: &str, config: &str) -> String {
        self.apply(manager, config).unwrap_err().to_string()
    }

    /// Replaces the object.
    pub(super) fn update(&mut self, manager: &str, object: &str) {
        let mut object = self.complete(object);
        if self.live.is_some() {
            object.meta_mut().set_uid("u");
        }
        let updated = self
            .tracker
            .update(self.live.as_ref(), object, manager, self.now)
            .unwrap();
        self.write(updated);
    }

    fn complete(&self, text: &str) -> Value {
        let mut object = tree(text);
        object.meta_mut().set_name("x");
        let members = object.as_object_mut().unwrap();
        members.insert("apiVersion", self.tracker.api_version);
        members.insert("kind", self.tracker.kind);
        object
    }

    fn write(&mut self, mut object: Value) {
        object.meta_mut().set_uid("u");
        if let Type::Catalogue(_) = self.tracker.of {
            let kind = crate::catalog::BUILTIN
                .kind_of(self.tracker.api_version, self.tracker.kind)
                .unwrap();
            canonical::canonicalize(&mut object, crate::catalog::BUILTIN.root(kind).node());
        }
        self.live = Some(object);
        self.now = Timestamp::from_unix(self.now.unix_seconds() + 60, 0);
    }

    /// Every entry: manager, operation, subresource, minutes since noon, fields.
    pub(super) fn owners(&self) -> Vec<String> {
        let owners = Owners::decode(self.live.as_ref().unwrap()).unwrap();
        let mut shown: Vec<String> = owners.iter().map(show_owner).collect();
        shown.sort();
        shown
    }

    #[track_caller]
    pub(super) fn check_owners(&self, expected: &[&str]) {
        assert_eq!(self.owners(), expected);
    }

    #[track_caller]
    pub(super) fn check_at(&self, path: &[&str], expected: &str) {
        let found = self
            .live
            .as_ref()
            .unwrap()
            .at(path)
            .map_or("absent".to_owned(), json::to_string);
        assert_eq!(found, expected);
    }
}

fn show_owner(owner: &Owner) -> String {
    let Manager {
        name,
        operation,
        api_version: _,
        subresource,
    } = &owner.manager;

    let minutes = owner
        .time
        .map(|time| (time.unix_seconds() - NOON.unix_seconds()) / 60);
    let time = minutes.map_or("never".to_owned(), |minutes| format!("+{minutes}"));
    let through = if subresource.is_empty() {
        String::new()
    } else {
        format!("/{subresource}")
    };

    let fields = fields_v1::encode(&owner.fields);
    format!(
        "{name}{through} {} {time} {}",
        operation.as_str(),
        fields.as_str()
    )
}
