//! Strategic merge patch: a merge patch that merges lists of type set or map by element.
//!
//! The catalogue has the patch strategy of each field: lists of objects are merged by a key of
//! their elements, lists of scalars as sets, and the rest is replaced. A patch may also contain
//! directives, which are members with a `$`:
//!
//! | | |
//! |---|---|
//! | `$patch: delete` | deletes the object, or the element with this key |
//! | `$patch: replace` | replaces the object, or the whole list |
//! | `$retainKeys: […]` | deletes every member that is not listed |
//! | `$deleteFromPrimitiveList/FIELD: […]` | deletes these scalars |
//! | `$setElementOrder/FIELD: […]` | the order of the list afterwards |
//!
//! [`apply`] applies a patch to an object ([`merge`](self) for objects, `lists` for lists, `order`
//! for their order), and [`restore`] checks the type of the result. [`between`] and [`three_way`]
//! compute patches, for clients (`diff`, `diff_lists`); a three-way patch is two differences, of
//! which one is merged into the other, so it uses the merge too.
//!
//! Everything is linear in the size of its inputs but for sorting: elements are found by hashed
//! keys. Where upstream panics (null elements in a merged list, keys that are objects), this
//! returns an error.

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

/// Decodes a patch. The error has upstream's message.
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

/// The object with the patch applied.
pub fn apply(object: Map, patch: Map, of: Struct<'_>) -> Result<Map, Error> {
    Merge::Final.objects(object, patch, Schema::of(of.node()))
}

/// The patch that turns `original` into `modified`.
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

/// The field of a directive such as `$setElementOrder/FIELD`.
fn field_of<'d>(directive: &'d str, prefix: &str) -> Option<&'d str> {
    directive.strip_prefix(prefix)?.strip_prefix('/')
}
