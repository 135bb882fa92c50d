//! JSON patch (RFC 6902), with the behaviour of the library that upstream uses.
//!
//! Text is decoded into a [`Patch`], a list of operations that are not validated yet;
//! [`Patch::apply`] applies them one after the other and stops at the first that fails. Deviations
//! that clients rely on: `replace` sets an absent member, a negative index counts from the end,
//! anything before the first slash of a path is ignored, and a null member is indistinguishable
//! from an absent one except for `remove`.
//!
//! The patched tree keeps the notation of the patch's scalars (see [`crate::patch`]).

mod apply;
mod error;
mod pointer;
#[cfg(test)]
mod tests;

pub use error::{DecodeError, ElementError, Error};

use super::document::{self, Decoded};
use crate::codec::json::{self, SyntaxError};
use crate::{Text, Value};

/// Maximum number of operations in a patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Maximum size that the `copy` operations of one patch may add, in bytes of JSON.
pub const MAX_COPIED_BYTES: usize = 3 << 20;

/// A decoded patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    operations: Vec<Operation>,
}

/// One operation, as far as it could be decoded: missing parts are an error only when the operation
/// is applied.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    kind: Text,
    path: Result<Text, Unreadable>,
    from: Result<Text, Unreadable>,
    /// `None`: not given, which is not the same as null.
    value: Option<Value>,
}

/// Why an operation has no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreadable {
    Missing,
    /// It is of this type, not a string.
    Is(&'static str),
}

/// Decodes a patch strictly, for requests that report unknown and duplicate members.
pub fn decode(text: &[u8]) -> Result<Decoded<Patch>, DecodeError> {
    let messages = document::check_operations(text).map_err(DecodeError::Checked)?;
    let strict = messages
        .into_iter()
        .map(|message| format!("json patch {message}"))
        .collect();
    Ok(Decoded {
        patch: decode_lenient(text)?,
        strict,
    })
}

/// Decodes a patch leniently.
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
