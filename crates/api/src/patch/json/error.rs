//! Errors of JSON patches.

use super::{MAX_COPIED_BYTES, MAX_OPERATIONS, Unreadable};
use crate::Text;
use crate::codec::json::{self, SyntaxError};
use crate::go_text::{NumberError, Quoted};

/// Why a text is no JSON patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Reported by [`super::decode`].
    #[error("error decoding patch: {0}")]
    Checked(json::DecodeError),
    #[error("{0}")]
    Syntax(SyntaxError),
    #[error("json: cannot unmarshal {0} into Go value of type jsonpatch.Patch")]
    NotAList(&'static str),
    #[error("json: cannot unmarshal {0} into Go value of type jsonpatch.Operation")]
    NotAnOperation(&'static str),
}

/// Why a patch does not apply. The texts are those of upstream's library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The patch is too large.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit {MAX_COPIED_BYTES}"
    )]
    CopiedTooMuch(usize),
    /// Operations nest values too deeply.
    #[error("exceeded max depth")]
    TooDeep,
    #[error("Unexpected kind: {0}")]
    UnexpectedKind(Text),
    #[error("{operation} operation failed to decode {member}: {why}")]
    NoPath {
        operation: &'static str,
        member: &'static str,
        why: String,
    },
    #[error("add operation does not apply: doc is missing path: \"{0}\": missing value")]
    AddToMissing(Text),
    #[error("error in add for path: '{0}': {1}")]
    Add(Text, ElementError),
    #[error("remove operation does not apply: doc is missing path: \"{0}\": missing value")]
    RemoveFromMissing(Text),
    #[error("error in remove for path: '{0}': {1}")]
    Remove(Text, ElementError),
    #[error("replace operation does not apply: doc is missing path: {0}: missing value")]
    ReplaceInMissing(Text),
    #[error("replace operation does not apply: doc is missing key: {0}: missing value")]
    ReplaceMissing(Text),
    // The ending is upstream's: it has no error to wrap there.
    #[error("replace operation value must be object or array: %!w(<nil>)")]
    ReplaceByScalar,
    #[error("move operation does not apply: doc is missing from path: {0}: missing value")]
    MoveFromMissing(Text),
    #[error("move operation does not apply: doc is missing destination path: {0}: missing value")]
    MoveToMissing(Text),
    #[error("error in move for path: '{0}': {1}")]
    Move(Text, ElementError),
    #[error("copy operation does not apply: doc is missing from path: {0}: missing value")]
    CopyFromMissing(Text),
    #[error("copy operation does not apply: doc is missing destination path: {0}: missing value")]
    CopyToMissing(Text),
    #[error("error in copy for from: '{0}': {1}")]
    CopyFrom(Text, ElementError),
    #[error("error while adding value during copy: {0}")]
    CopyTo(ElementError),
    #[error("test operation does not apply: is missing path: {0}: missing value")]
    TestOfMissing(Text),
    #[error("error in test for path: '{0}': {1}")]
    Test(Text, ElementError),
    #[error("testing value {0} failed: test failed")]
    TestFailed(Text),
}

/// Why a container has no such element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    #[error("strconv.Atoi: parsing {}: {reason}", Quoted(key))]
    NoIndex { key: Text, reason: NumberError },
    #[error(
        "value was not a proper array index: '{key}': strconv.Atoi: parsing {}: {reason}",
        Quoted(key)
    )]
    NoIndexToAdd { key: Text, reason: NumberError },
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    OutOfBounds(i64),
    #[error("Unable to remove nonexistent key: {0}: missing value")]
    NoKey(Text),
}

impl Error {
    /// Some operations do not report why they have no path.
    pub(super) fn no_path(operation: &'static str, member: &'static str) -> Error {
        Error::NoPath {
            operation,
            member,
            why: "missing value".to_string(),
        }
    }

    pub(super) fn unreadable(
        operation: &'static str,
        member: &'static str,
        why: Unreadable,
    ) -> Error {
        let why = match why {
            Unreadable::Missing if member == "from" => {
                "operation, missing from field: missing value".to_string()
            }
            Unreadable::Missing => "operation missing path field: missing value".to_string(),
            Unreadable::Is(found) => {
                format!("json: cannot unmarshal {found} into Go value of type string")
            }
        };

        Error::NoPath {
            operation,
            member,
            why,
        }
    }
}
