//! Who owns which fields: `metadata.managedFields`, read, kept and written.
//!
//! An entry belongs to a manager, told apart by name, operation and subresource; whoever updates is
//! someone else in every version. [`Owners::decode`] reads the entries of an object,
//! [`Owners::encode`] writes them in their order. [`cap`] keeps the number of updaters in bounds.

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

/// Who owns fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    pub name: Text,
    pub operation: Operation,
    /// Of the last request. Updates of another version are another manager's; whoever applies is
    /// one in all versions.
    pub api_version: Text,
    /// Empty for the object itself.
    pub subresource: Text,
}

impl Manager {
    /// Whether the two are one manager.
    pub(super) fn is(&self, other: &Manager) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The text by which upstream tells managers apart, and sorts them where nothing else does.
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

/// How an object carries sets of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As their text, steps in their own order: built-in kinds.
    Text,
    /// As a tree like all the rest, and so with steps in the order of their names: custom
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

    /// The versions in which fields are owned, each once: those the object will be needed in.
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
        let place = self.0.iter().position(|owner| owner.manager.is(manager))?;
        Some(self.0.swap_remove(place))
    }

    /// Puts an owner in the place of what the same manager owned before.
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

    /// Reads an object's entries. Of several of one manager the last counts.
    pub fn decode(object: &Value) -> Result<Owners, EntryError> {
        let mut owners = Vec::new();
        for (place, entry) in entry::entries(object).into_iter().flatten().enumerate() {
            owners.push(entry::decode(entry, place)?);
        }
        // Sorted, so that the same manager is found among neighbours, however many entries there
        // are.
        owners.reverse();
        owners.sort_by_cached_key(|owner: &Owner| owner.manager.identifier());
        owners.dedup_by(|later, first| later.manager.is(&first.manager));
        Ok(Owners(owners))
    }

    /// Writes the entries into an object; without any it has no `managedFields`.
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

    /// Whether an object asks for its owners to be forgotten: `managedFields` is `[]`, or one entry
    /// that says nothing.
    pub(super) fn are_reset(object: &Value) -> bool {
        match entry::entries(object) {
            Some([]) => true,
            Some([only]) => entry::is_blank(only),
            _ => false,
        }
    }
}

/// Fields that no manager ever owns, because the server sets them, or because they say which object
/// it is.
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
