//! YAML, read and written as upstream's API machinery does it.
//!
//! Reading: bytes are checked ([`reader`]), cut into tokens ([`scanner`]), laid out as the nodes of
//! the first document ([`tape`]), and made a [`Value`] ([`decode`]), whose scalars are what YAML
//! 1.1 says they are ([`resolve`]). Writing ([`print`]) is the block style that `kubectl get -o
//! yaml` shows, byte for byte.
//!
//! The parser is our own. Users see its error texts, so it must find the same errors at the same
//! places as upstream's decoder, an old branch of libyaml with changes of its own: `unsafe-libyaml`
//! and `libyaml-safer` follow a later libyaml, which takes `{a:1}` and `%YAML 1.2` differently,
//! looks through all open brackets at every token (so that a megabyte of `[` costs the square of
//! it), and has no limit of depth; `saphyr-parser` reads YAML 1.2 and has its own texts. What
//! upstream does and we do not: let a long string that is aliased often fill the memory.
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

/// The first document of a text; null if there is none. Of a key that occurs more than once the
/// last is taken.
///
/// # Errors
/// The texts are those of upstream's `YAMLToJSON`; where it is reached through `Unmarshal`, the
/// caller puts `error converting YAML to JSON: ` in front.
pub fn decode(text: &[u8]) -> Result<Value, Error> {
    decode_with(text, false).map(|decoded| decoded.value)
}

/// The same, and the keys that occur more than once: strict decoding complains about them beside
/// the value.
///
/// # Errors
/// As [`decode`]; duplicate keys alone are none.
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
