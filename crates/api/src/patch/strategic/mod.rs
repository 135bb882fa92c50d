//! Strategic merge patch: a merge patch that knows which lists are sets and maps in disguise.
//!
//! The catalogue says of each field how it is patched: lists of objects are merged by a key of
//! their elements, lists of scalars as sets, and the rest is replaced. A patch may also hold
//! directives, which are members with a `$`:
//!
//! | | |
//! |---|---|
//! | `$patch: delete` | the object, or the element with this key, goes |
//! | `$patch: replace` | the object, or the whole list, is only what the patch says |
//! | `$retainKeys: […]` | every member that is not listed goes |
//! | `$deleteFromPrimitiveList/FIELD: […]` | these scalars go |
//! | `$setElementOrder/FIELD: […]` | the order that the list has afterwards |
//!
//! Two directions. [`apply`] puts a patch into an object ([`merge`](self) for objects, `lists` for
//! lists, `order` for what comes where), and [`restore`] sees whether what came out is of its type
//! still. [`between`] and [`three_way`] compute patches, for clients (`diff`, `diff_lists`); a
//! three-way patch is two differences, of which one is merged into the other, so it needs the first
//! direction too.
//!
//! Everything is linear in the size of its inputs but for sorting: elements are found by hashed
//! keys. Where upstream panics (null elements in a merged list, keys that are objects), this
//! refuses.

mod conflicts;
mod diff;
mod diff_lists;
mod error;
mod key;
mod lists;
mod merge;
mod order;
mod restore;
mod schema;
#[cfg(test)]
mod tests;
mod three_way;

pub use error::Error;
pub use restore::{RestoreError, restore};
pub use three_way::{Overwrite, three_way};

use super::Precondition;
use super::document::{self, Decoded};
use crate::catalog::Struct;
use crate::codec::json::DecodeError;
use crate::go_text::GoValue;
use crate::{Map, Value};
use diff::Diff;
use merge::Merge;
use schema::Schema;

/// Reads a patch. Upstream's message for a text that is none is the error's own.
pub fn decode(text: &[u8]) -> Result<Decoded<Map>, DecodeError> {
    let decoded = document::check_object(text)?;
    let patch = match decoded.value {
        Value::Object(map) => map,
        // `null` changes nothing.
        _ => Map::new(),
    };
    Ok(Decoded {
        patch,
        strict: decoded.strict,
    })
}

/// The object with the patch put into it.
pub fn apply(object: Map, patch: Map, of: Struct<'_>) -> Result<Map, Error> {
    Merge::Final.objects(object, patch, Schema::of(of.node()))
}

/// The patch that makes `modified` of `original`.
pub fn between(
    original: &Map,
    modified: &Map,
    of: Struct<'_>,
    preconditions: &[Precondition<'_>],
) -> Result<Map, Error> {
    let all = Diff {
        element_order: true,
        changes: true,
        removals: true,
        retain_keys: false,
    };
    let patch = all.objects(original, modified, Schema::of(of.node()))?;
    check(patch, preconditions)
}

fn check(patch: Map, preconditions: &[Precondition<'_>]) -> Result<Map, Error> {
    if preconditions
        .iter()
        .all(|precondition| precondition.holds(&patch))
    {
        return Ok(patch);
    }
    Err(Error::Precondition(
        GoValue(&Value::Object(patch)).to_string(),
    ))
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// The field that a directive such as `$setElementOrder/FIELD` is about.
fn field_of<'d>(directive: &'d str, prefix: &str) -> Option<&'d str> {
    directive.strip_prefix(prefix)?.strip_prefix('/')
}
