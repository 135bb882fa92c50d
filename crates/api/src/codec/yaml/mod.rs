//! YAML, decoded and encoded as upstream's API machinery does it.
//!
//! Decoding: bytes are validated ([`reader`]), tokenized ([`scanner`]), parsed into the nodes of
//! the first document ([`tape`]), and converted to a [`Value`] ([`decode`]), whose scalars have
//! their YAML 1.1 types ([`resolve`]). Encoding ([`print`]) is the block style that `kubectl get -o
//! yaml` shows, byte for byte.
//!
//! The parser is our own. Users see its error texts, so it must find the same errors at the same
//! positions as upstream's decoder, an old branch of libyaml with changes of its own:
//! `unsafe-libyaml` and `libyaml-safer` follow a later libyaml, which treats `{a:1}` and `%YAML
//! 1.2` differently, searches all open brackets at every token (so that a megabyte of `[` takes
//! quadratic time), and has no nesting limit; `saphyr-parser` reads YAML 1.2 and has its own texts.
//! One difference to upstream is intended: a long string that is aliased often cannot fill the
//! memory.
//!
//! Work is linear in the text, and nothing recurses: text may be nested 10,000 deep, as upstream's,
//! though a value may only be as deep as one from JSON.

mod cursor;
mod decode;
mod documents;
mod error;
mod message;
mod number;
mod print;
mod reader;
mod resolve;
mod scanner;
mod tape;
#[cfg(test)]
mod tests;
mod timestamp;
mod token;

pub use documents::{DocumentError, documents};
pub use error::{DuplicateKeys, Error};
pub use print::print;

use crate::value::Value;

/// Decodes the first document of a text; null if there is none. Of duplicate keys the last is
/// taken.
///
/// # Errors
/// The texts are those of upstream's `YAMLToJSON`; where it is reached through `Unmarshal`, the
/// caller prepends `error converting YAML to JSON: `.
pub fn decode(text: &[u8]) -> Result<Value, Error> {
    decode_with(text, false).map(|decoded| decoded.value)
}

/// As [`decode`], and returns the duplicate keys, which strict decoding reports beside the value.
///
/// # Errors
/// As [`decode`]; duplicate keys are not an error.
pub fn decode_strict(text: &[u8]) -> Result<(Value, Option<DuplicateKeys>), Error> {
    let decoded = decode_with(text, true)?;
    let duplicates = (!decoded.duplicates.is_empty()).then_some(DuplicateKeys(decoded.duplicates));
    Ok((decoded.value, duplicates))
}

fn decode_with(text: &[u8], strict: bool) -> Result<decode::Decoded, Error> {
    let input = reader::read(text);
    let tape = tape::first_document(scanner::Scanner::new(&input))?;
    decode::decode(&tape, strict)
}
