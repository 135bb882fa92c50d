//! JSON: the form in which objects are cached and mostly sent.

mod decode;
pub(crate) mod go_names;
mod literal;
mod repeated;
mod scan;
mod typed_write;
mod write;

pub use decode::{DecodeError, Decoded, MAX_TREE_DEPTH, decode};
pub use literal::parse_literal;
pub use scan::{MAX_DEPTH, SyntaxError};
pub use typed_write::write_typed;
pub use write::{write, write_pretty, write_string};

use crate::Value;
use crate::value::RawJson;

/// `value` as compact JSON.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    write(value, &mut out);
    out
}

/// `value` as compact JSON text.
pub fn to_string(value: &Value) -> String {
    String::from_utf8(to_vec(value)).expect("every piece written is UTF-8")
}

/// `value` as indented JSON, with a line feed at its end.
pub fn to_pretty(value: &Value) -> String {
    let mut out = Vec::with_capacity(2048);
    write_pretty(value, 0, &mut out);
    out.push(b'\n');
    String::from_utf8(out).expect("every piece written is UTF-8")
}

/// Parses any JSON without a type.
pub fn parse(text: &[u8]) -> Result<Value, SyntaxError> {
    match decode(text, None) {
        Ok(decoded) => Ok(decoded.value),
        Err(DecodeError::Syntax(error)) => Err(error),
        // A number that does not fit into 64 bits.
        Err(DecodeError::Type { message, .. }) => Err(SyntaxError(message)),
    }
}

/// The offset of the first syntax error.
pub fn fault_at(text: &[u8]) -> Option<usize> {
    let mut scanner = scan::Scanner::new(text);
    let result = scanner.skip(0, None).and_then(|()| scanner.finish());
    result.err().map(|_| scanner.position())
}

/// The first value of a text with any leading white space, and the rest.
pub fn split_first(text: &[u8]) -> Result<(&[u8], &[u8]), SyntaxError> {
    let mut scanner = scan::Scanner::new(text);
    scanner.skip(0, None)?;
    Ok(text.split_at(scanner.position()))
}

/// Validates one JSON value and keeps it as raw text.
pub fn raw(text: &[u8]) -> Result<RawJson, SyntaxError> {
    let mut scanner = scan::Scanner::new(text);
    scanner.skip(0, None)?;
    scanner.finish()?;
    Ok(RawJson::trusted(&String::from_utf8_lossy(text)))
}

#[cfg(test)]
mod tests;
