//! Errors of strategic merge patches. The texts are upstream's.

use crate::go_text::{GoList, GoString, GoValue, LIST_TYPE, MAP_TYPE, Quoted, go_type};
use crate::{Map, Text, Value};

/// Why a patch could not be applied or computed.
///
/// In the server, the three bad formats are client errors (400), lists of lists are unprocessable
/// (422), and everything else is, as in upstream, an internal error (500).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("invalid patch format of primitive list")]
    BadPrimitiveList,
    #[error("invalid patch format of retainKeys")]
    BadRetainKeys,
    #[error("invalid patch format of setElementOrder list")]
    BadElementOrder,
    #[error("lists of lists are not supported")]
    ListOfLists,
    #[error("map: {element} does not contain declared merge key: {key}")]
    NoMergeKey { element: String, key: Text },
    #[error("expected a {expected}, but received a {received}")]
    UnexpectedType {
        expected: &'static str,
        received: &'static str,
    },
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective { directive: String, map: String },
    #[error("invalid value for special key: $patch")]
    DirectiveIsNoText,
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirective,
    #[error("list element types are not identical: {0}")]
    MixedList(String),
    #[error("no elements in any of the given slices")]
    NoElements,
    #[error("value for key {0} is not a map")]
    OrderIsNoMap(usize),
    #[error("cannot merge lists without merge key for {0}")]
    ListWithoutKey(&'static str),
    #[error("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch { patch: String, order: String },
    #[error(
        "{0} and {1} are not deep equal: this may happen when calculating the 3-way diff patch"
    )]
    RetainKeysDiffer(String, String),
    #[error("merging an object in json but data type is not struct, instead is: {0}")]
    NotAStruct(&'static str),
    #[error(
        "unable to find api field in struct {of} for the json field {}",
        Quoted(field)
    )]
    UnknownField { of: String, field: Text },
    #[error("expected slice or array type, but got: struct")]
    NotAList,
    #[error("unexpected slice of slice")]
    ListOfListsDeclared,
    #[error("cannot find merge key `{key}` in merging list element:{element}")]
    NoKeyToCompare { key: Text, element: String },
    #[error("precondition failed for: {0}")]
    Precondition(String),
    #[error("patch:\n{patch}\nconflicts with changes made from original to current:\n{changes}\n")]
    Conflict { patch: String, changes: String },
}

impl Error {
    pub(super) fn no_merge_key(element: &Map, key: &str) -> Error {
        Error::NoMergeKey {
            element: printed(element),
            key: Text::new(key),
        }
    }

    pub(super) fn no_key_to_compare(element: &Map, key: &str) -> Error {
        Error::NoKeyToCompare {
            key: Text::new(key),
            element: printed(element),
        }
    }

    pub(super) fn not_a_map(found: &Value) -> Error {
        Error::UnexpectedType {
            expected: MAP_TYPE,
            received: type_of(found),
        }
    }

    pub(super) fn not_a_list(found: &Value) -> Error {
        Error::UnexpectedType {
            expected: LIST_TYPE,
            received: type_of(found),
        }
    }

    pub(super) fn unknown_directive(directive: &Value, map: &Map) -> Error {
        Error::UnknownDirective {
            directive: GoString(directive).to_string(),
            map: printed(map),
        }
    }

    pub(super) fn mixed(lists: &[&[Value]]) -> Error {
        Error::MixedList(printed_lists(lists))
    }

    pub(super) fn order_mismatch(patch: &[Value], order: &[Value]) -> Error {
        Error::OrderMismatch {
            patch: GoList(patch).to_string(),
            order: GoList(order).to_string(),
        }
    }
}

fn printed(map: &Map) -> String {
    GoValue(&Value::Object(map.clone())).to_string()
}

/// Several lists, one after the other, as upstream prints a list of lists.
fn printed_lists(lists: &[&[Value]]) -> String {
    let all = lists
        .iter()
        .map(|items| GoList(items).to_string())
        .collect::<Vec<_>>();
    format!("[{}]", all.join(" "))
}

/// The type of a value. Null has none, and upstream's message shows that this case was not
/// expected.
fn type_of(found: &Value) -> &'static str {
    if found.is_null() {
        "%!s(<nil>)"
    } else {
        go_type(found)
    }
}
