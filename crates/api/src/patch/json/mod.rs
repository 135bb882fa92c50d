//! JSON patch (RFC 6902), with the habits of the library that upstream uses.
//!
//! Text becomes a [`Patch`], a list of operations that need not make sense yet; [`Patch::apply`]
//! carries them out one after the other and stops at the first that cannot be. The habits, which
//! clients rely on: `replace` sets a member that is not there, an index counts from the end if it
//! is negative, whatever stands before the first slash of a path is passed over, and a member that
//! is null cannot be told from one that is absent except by `remove`.
//!
//! The patched tree holds the patch's scalars as they were written (see [`crate::patch`]).

mod apply;
mod error;
mod pointer;
#[cfg(test)]
mod tests;

pub use error::{DecodeError, Error, PlaceError};

use super::document::{self, Decoded};
use crate::codec::json::{self, SyntaxError};
use crate::{Text, Value};

/// No patch may have more operations.
pub const MAX_OPERATIONS: usize = 10_000;

/// What the `copy` operations of one patch may add, in bytes of JSON.
pub const MAX_COPIED_BYTES: usize = 3 << 20;

/// A decoded patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    operations: Vec<Operation>,
}

/// One operation, as far as it could be read: what is missing is an error only when the operation's
/// turn comes.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    kind: Text,
    path: Result<Text, Unreadable>,
    from: Result<Text, Unreadable>,
    /// `None`: not given, which is not the same as null.
    value: Option<Value>,
}

/// Why a path cannot be had from its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreadable {
    Missing,
    /// It is not a string but this.
    Is(&'static str),
}

/// Reads a patch and checks it, for requests that want to know of unknown and repeated members.
pub fn decode(text: &[u8]) -> Result<Decoded<Patch>, DecodeError> {
    let complaints = document::check_operations(text).map_err(DecodeError::Checked)?;
    let strict = complaints
        .into_iter()
        .map(|complaint| format!("json patch {complaint}"))
        .collect();
    Ok(Decoded {
        patch: decode_lenient(text)?,
        strict,
    })
}

/// Reads a patch and lets pass what does not matter.
pub fn decode_lenient(text: &[u8]) -> Result<Patch, DecodeError> {
    let operations = match json::parse_literal(text)? {
        Value::Null => Vec::new(),
        Value::Array(elements) => elements
            .into_iter()
            .map(Operation::read)
            .collect::<Result<_, _>>()?,
        other => return Err(DecodeError::NotAList(other.type_name())),
    };
    Ok(Patch { operations })
}

impl Operation {
    fn read(element: Value) -> Result<Operation, DecodeError> {
        let mut members = match element {
            Value::Object(members) => members,
            Value::Null => crate::Map::new(),
            other => return Err(DecodeError::NotAnOperation(other.type_name())),
        };

        let unknown = Text::const_new("unknown");
        Ok(Operation {
            kind: text_of(members.get("op")).unwrap_or(unknown),
            path: text_of(members.get("path")),
            from: text_of(members.get("from")),
            value: members.remove("value"),
        })
    }
}

fn text_of(member: Option<&Value>) -> Result<Text, Unreadable> {
    match member {
        None | Some(Value::Null) => Err(Unreadable::Missing),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Raw(raw)) => match json::parse(raw.as_str().as_bytes()) {
            Ok(Value::String(text)) => Ok(text),
            _ => Err(Unreadable::Is(raw.type_name())),
        },
        Some(other) => Err(Unreadable::Is(other.type_name())),
    }
}

impl From<SyntaxError> for DecodeError {
    fn from(error: SyntaxError) -> DecodeError {
        DecodeError::Syntax(error)
    }
}
