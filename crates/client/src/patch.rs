//! The four kinds of patches.

use coracle_api::Value;
use coracle_api::codec::json;

/// A change to an object that the server works out.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A list of operations (RFC 6902).
    Json(Value),
    /// What is to be merged in; null takes away (RFC 7386).
    Merge(Value),
    /// Merged by the rules of the kind; built-in kinds only.
    Strategic(Value),
    /// Server-side apply: what this manager wants to be so.
    Apply {
        /// All that the manager says about the object.
        object: Value,
        /// Who says it.
        manager: String,
        /// Take what others say otherwise.
        force: bool,
    },
}

impl Patch {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Patch::Json(_) => "application/json-patch+json",
            Patch::Merge(_) => "application/merge-patch+json",
            Patch::Strategic(_) => "application/strategic-merge-patch+json",
            Patch::Apply { .. } => "application/apply-patch+yaml",
        }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        match self {
            Patch::Json(value) | Patch::Merge(value) | Patch::Strategic(value) => {
                json::to_vec(value)
            }
            Patch::Apply { object, .. } => json::to_vec(object),
        }
    }
}
