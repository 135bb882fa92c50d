//! The four kinds of patches.

use coracle_api::Value;
use coracle_api::codec::json;

/// A change to an object that the server applies.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A list of operations (RFC 6902).
    Json(Value),
    /// JSON merge patch: merged into the object; null removes (RFC 7386).
    Merge(Value),
    /// Strategic merge patch; built-in kinds only.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// The manager's intent.
        object: Value,
        /// The field manager.
        manager: String,
        /// Take over fields of other managers in a conflict.
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
