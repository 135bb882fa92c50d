//! Owners of fields: `metadata.managedFields`, decoded, kept and encoded.
//!
//! An entry belongs to a manager, identified by name, operation and subresource; an updater is a
//! different manager in every version. [`Owners::decode`] reads the entries of an object,
//! [`Owners::encode`] writes them in order. [`cap`] limits the number of updaters.

mod cap;
mod conflicts;
mod entry;

pub use conflicts::{Conflict, Conflicts};
pub use entry::EntryError;

use super::element::FieldPath;
use super::set::Set;
use crate::codec::json;
use crate::time::Timestamp;
use crate::{Text, Value};

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// An owner of fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    pub name: Text,
    pub operation: Operation,
    /// Of the last request. An updater is another manager in each version; an applier is the same
    /// in all versions.
    pub api_version: Text,
    /// Empty for the object itself.
    pub subresource: Text,
}

impl Manager {
    /// Whether both are the same manager.
    pub(super) fn is(&self, other: &Manager) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The text by which upstream identifies managers, and sorts them where nothing else does.
    pub(super) fn identifier(&self) -> String {
        let version = if self.operation == Operation::Update {
            self.api_version.as_str()
        } else {
            ""
        };

        let members = [
            ("manager", self.name.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", version),
            ("subresource", self.subresource.as_str()),
        ];

        let mut text = Vec::from(b"{");
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_empty()) {
            if text.len() > 1 {
                text.push(b',');
            }
            json::write_string(name, &mut text);
            text.push(b':');
            json::write_string(value, &mut text);
        }

        text.push(b'}');

        String::from_utf8(text).expect("every piece written is UTF-8")
    }
}

/// A manager with its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    pub manager: Manager,
    pub time: Option<Timestamp>,
    pub fields: Set,
}

/// How an object stores field sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As raw text, path elements in their own order: built-in kinds.
    Text,
    /// As a tree like the rest of the object, so path elements are sorted by name: custom
    /// resources.
    Tree,
}

/// The owners of an object's fields, each manager once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owners(pub(super) Vec<Owner>);

impl Owners {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Owner> {
        self.0.iter()
    }

    /// The versions in which fields are owned, each once: the object will be converted to these.
    pub fn api_versions(&self) -> Vec<Text> {
        let mut versions: Vec<Text> = self
            .0
            .iter()
            .map(|owner| owner.manager.api_version.clone())
            .collect();
        versions.sort();
        versions.dedup();
        versions
    }

    pub(super) fn get(&self, manager: &Manager) -> Option<&Owner> {
        self.0.iter().find(|owner| owner.manager.is(manager))
    }

    pub(super) fn take(&mut self, manager: &Manager) -> Option<Owner> {
        let index = self.0.iter().position(|owner| owner.manager.is(manager))?;
        Some(self.0.swap_remove(index))
    }

    /// Replaces what the same manager owned before.
    pub(super) fn set(&mut self, owner: Owner) {
        match self
            .0
            .iter_mut()
            .find(|known| known.manager.is(&owner.manager))
        {
            Some(known) => *known = owner,
            None => self.0.push(owner),
        }
    }

    /// Decodes an object's entries. Of several entries of one manager the last counts.
    pub fn decode(object: &Value) -> Result<Owners, EntryError> {
        let mut owners = Vec::new();
        for (index, entry) in entry::entries(object).into_iter().flatten().enumerate() {
            owners.push(entry::decode(entry, index)?);
        }
        // Sorted, so that duplicates are neighbours, however many entries there are.
        owners.reverse();
        owners.sort_by_cached_key(|owner: &Owner| owner.manager.identifier());
        owners.dedup_by(|later, first| later.manager.is(&first.manager));
        Ok(Owners(owners))
    }

    /// Writes the entries into an object; without any, `managedFields` is removed.
    pub fn encode(mut self, object: &mut Value, form: Form) {
        self.0.sort_by_cached_key(|owner| {
            let manager = &owner.manager;
            let seconds = owner.time.map_or(0, Timestamp::unix_seconds);

            let name = manager.name.clone();
            (
                manager.operation,
                seconds,
                name,
                manager.api_version.clone(),
                manager.subresource.clone(),
            )
        });

        let entries: Vec<Value> = self
            .0
            .iter()
            .map(|owner| entry::encode(owner, form))
            .collect();

        let mut meta = object.meta_mut();
        if entries.is_empty() {
            meta.members().remove("managedFields");
        } else {
            meta.members()
                .insert(Text::const_new("managedFields"), entries);
        }
    }

    /// Whether an object requests to reset its owners: `managedFields` is `[]`, or one empty entry.
    pub(super) fn are_reset(object: &Value) -> bool {
        match entry::entries(object) {
            Some([]) => true,
            Some([only]) => entry::is_blank(only),
            _ => false,
        }
    }
}

/// Fields that are never owned, because the server sets them or they identify the object.
pub(super) fn untracked() -> &'static Set {
    static UNTRACKED: std::sync::LazyLock<Set> = std::sync::LazyLock::new(|| {
        let top = ["apiVersion", "kind", "metadata"].map(|name| FieldPath::fields(&[name]));
        let metadata = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];

        Set::of(
            top.into_iter()
                .chain(metadata.map(|name| FieldPath::fields(&["metadata", name]))),
        )
    });

    &UNTRACKED
}
