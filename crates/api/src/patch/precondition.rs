//! Preconditions of computed patches.

use crate::Map;

/// A part of the object that the patch must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition<'a> {
    /// A member at the top: `kind`.
    KeyUnchanged(&'a str),
    /// A member of the metadata: `name`.
    MetadataKeyUnchanged(&'a str),
}

impl Precondition<'_> {
    pub(super) fn holds(self, patch: &Map) -> bool {
        match self {
            Precondition::KeyUnchanged(key) => !patch.contains_key(key),
            Precondition::MetadataKeyUnchanged(key) => patch
                .get("metadata")
                .is_none_or(|metadata| metadata.get(key).is_none()),
        }
    }
}
