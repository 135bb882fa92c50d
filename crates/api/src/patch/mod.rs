//! Patches: JSON patch, merge patch and strategic merge patch.
//!
//! A patch arrives as text and is decoded ([`json::decode`], [`merge::decode`],
//! [`strategic::decode`]); an engine applies it to the tree of the current object. The result is an
//! unchecked tree: the caller decodes it again with its type, as it would a body. The other
//! direction ([`merge::between`], [`strategic::between`] and their three-way forms) is for clients,
//! which send only what changed.
//!
//! In upstream JSON patch and merge patch work on text: a number that was written `2.0` is still
//! `2.0` when the patched object is decoded, and is refused as an integer. So their trees come from
//! [`parse_literal`](crate::codec::json::parse_literal). Strategic merge works on plain trees, in
//! upstream as here.
//!
//! Server-side apply is no patch in this sense: it merges configurations by ownership, see
//! [`crate::apply`].

mod document;
pub mod json;
pub mod merge;
mod patched_text;
mod precondition;
pub mod strategic;

pub use document::Decoded;
pub use patched_text::patched_text;
pub use precondition::Precondition;

use std::borrow::Cow;

use crate::Value;
use crate::codec::json::parse_literal;

/// The value itself, or the tree of a raw value.
///
/// Text that is nested too deeply for a tree stays raw: nothing inside it can be changed.
fn opened(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Raw(raw) => match parse_literal(raw.as_str().as_bytes()) {
            Ok(tree) => Cow::Owned(tree),
            Err(_) => Cow::Borrowed(value),
        },
        _ => Cow::Borrowed(value),
    }
}

/// Turns a raw container into a tree. A scalar keeps its notation.
fn open(value: &mut Value) {
    if let Value::Raw(raw) = value
        && matches!(raw.type_name(), "object" | "array")
        && let Ok(tree) = parse_literal(raw.as_str().as_bytes())
    {
        *value = tree;
    }
}
