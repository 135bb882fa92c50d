//! Merge patch (RFC 7386): an object whose members replace, and whose nulls remove.
//!
//! [`apply`] is for the server; [`between`] and [`three_way`] compute patches, for clients. As in
//! upstream's library, a null member of the document counts as absent, and nulls below a new value
//! are removed even inside lists, but not where a list replaces an object.

mod create;
#[cfg(test)]
mod tests;

pub use create::{CreateError, between, three_way};

use std::iter::Peekable;

use super::document::{self, Decoded};
use super::open;
use crate::codec::json::{DecodeError as TypeError, SyntaxError, parse_literal};
use crate::fuzz::steps;
use crate::{Map, Text, Value};

/// Why a text is no merge patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Reported by [`decode`].
    #[error("error decoding patch: {0}")]
    Checked(TypeError),
    /// Neither an object nor a list.
    #[error("Invalid JSON Patch")]
    Invalid,
}

/// Decodes a patch strictly, for requests that report duplicate members.
pub fn decode(text: &[u8]) -> Result<Decoded<Value>, DecodeError> {
    let strict = document::check_object(text)
        .map_err(DecodeError::Checked)?
        .strict;
    Ok(Decoded {
        patch: decode_lenient(text)?,
        strict,
    })
}

/// Decodes a patch leniently. A list is accepted: it becomes the document, which no type allows.
pub fn decode_lenient(text: &[u8]) -> Result<Value, DecodeError> {
    match parse_literal(text) {
        Ok(patch @ (Value::Object(_) | Value::Array(_))) => Ok(patch),
        Ok(_) | Err(SyntaxError(_)) => Err(DecodeError::Invalid),
    }
}

/// The document with the patch applied.
pub fn apply(document: Value, patch: Value) -> Value {
    match (document, patch) {
        (Value::Object(document), Value::Object(patch)) => Value::Object(merge(document, patch)),
        (_, patch) => without_nulls(patch),
    }
}

/// Merges the members of both in one walk: they are sorted.
fn merge(document: Map, patch: Map) -> Map {
    let mut merged = Vec::with_capacity(document.len() + patch.len());
    let mut present = document.into_members().into_iter().peekable();
    for (name, change) in patch {
        steps::count(1);
        let found = advance(&mut present, &name, &mut merged);
        let value = match (found, change) {
            (_, Value::Null) => continue,
            (None | Some(Value::Null), change) => without_nulls(change),
            (Some(found), change) => merge_value(found, change),
        };
        merged.push((name, value));
    }

    merged.extend(present);

    Map::from_members(merged)
}

/// Passes on the members before `name` and returns the one of that name.
pub(super) fn advance(
    present: &mut Peekable<std::vec::IntoIter<(Text, Value)>>,
    name: &Text,
    passed: &mut Vec<(Text, Value)>,
) -> Option<Value> {
    while let Some(member) = present.next_if(|(other, _)| other < name) {
        steps::count(1);
        passed.push(member);
    }
    present
        .next_if(|(other, _)| other == name)
        .map(|(_, value)| value)
}

fn merge_value(mut found: Value, change: Value) -> Value {
    open(&mut found);
    match (found, change) {
        (Value::Object(found), Value::Object(change)) => Value::Object(merge(found, change)),
        (Value::Object(_), change) => change,
        (_, change) => without_nulls(change),
    }
}

/// A value without the null members of objects in it. Null elements of lists stay.
fn without_nulls(value: Value) -> Value {
    steps::count(1);

    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(name, value)| (name, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
