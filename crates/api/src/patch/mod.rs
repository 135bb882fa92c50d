//! Changes to objects, as clients write them: JSON patch, merge patch and strategic merge patch.
//!
//! A patch arrives as text and is decoded ([`json::decode`], [`merge::decode`],
//! [`strategic::decode`]); an engine puts it into the tree of the current object. What comes out is
//! a tree that nobody has checked yet: the caller decodes it again with its type, as it would a
//! body. The other direction ([`merge::between`], [`strategic::between`] and their three-way forms)
//! is for clients, which send only what changed.
//!
//! JSON patch and merge patch work on text in upstream: a number that was written `2.0` is still
//! `2.0` when the patched object is decoded, and is refused where an integer belongs. So their
//! trees come from [`parse_literal`](crate::codec::json::parse_literal). Strategic merge works on
//! plain trees, in upstream as here.
//!
//! Server-side apply is no patch in this sense: it merges configurations by ownership, not
//! instructions.

mod document;
pub mod json;
pub mod merge;
mod precondition;
mod shown;
pub mod strategic;

pub use document::Decoded;
pub use precondition::Precondition;
pub use shown::shown;

use std::borrow::Cow;

use crate::Value;
use crate::codec::json::parse_literal;

/// The value itself; of one that is carried as text, what the text says.
///
/// Text that is nested too deep for a tree stays text: nothing can be changed inside it.
fn opened(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Raw(raw) => match parse_literal(raw.as_str().as_bytes()) {
            Ok(tree) => Cow::Owned(tree),
            Err(_) => Cow::Borrowed(value),
        },
        _ => Cow::Borrowed(value),
    }
}

/// Makes a container that is carried as text a tree. A scalar keeps its text.
fn open(value: &mut Value) {
    if let Value::Raw(raw) = value
        && matches!(raw.type_name(), "object" | "array")
        && let Ok(tree) = parse_literal(raw.as_str().as_bytes())
    {
        *value = tree;
    }
}
