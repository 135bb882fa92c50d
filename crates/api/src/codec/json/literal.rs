//! Parses any JSON into a tree that preserves the notation of its scalars.
//!
//! Upstream's patches work on text: a number `2.0` in a patch is still `2.0` in the patched object,
//! where the decoder refuses it as an integer, and a `test` of `"\u0061"` fails on `"a"`. So a
//! scalar that [`write`](super::write) would write differently stays raw text; all others are plain
//! values.

use super::scan::{self, Scanner, SyntaxError, Token};
use super::{MAX_TREE_DEPTH, write};
use crate::codec::scalar;
use crate::value::RawJson;
use crate::{Map, Text, Value};

/// Parses a whole text. Of duplicate members the last is kept.
pub fn parse_literal(text: &[u8]) -> Result<Value, SyntaxError> {
    let mut scanner = Scanner::new(text);
    let value = value(&mut scanner, 0)?;
    scanner.finish()?;
    Ok(value)
}

fn value(scanner: &mut Scanner<'_>, depth: usize) -> Result<Value, SyntaxError> {
    let (token, written) = scanner.value_as_written()?;
    let bracket = match token {
        Token::Null => return Ok(Value::Null),
        Token::Bool(flag) => return Ok(Value::Bool(flag)),
        // A number that is out of range stays raw text.
        Token::Number(literal) => {
            return Ok(as_written(
                scalar::untyped_number(literal).unwrap_or_default(),
                written,
            ));
        }
        Token::String(text) => return Ok(as_written(Value::String(Text::new(text)), written)),
        Token::Open(bracket) => bracket,
    };

    if depth == MAX_TREE_DEPTH {
        return Err(scan::invalid(bracket, "exceeded max depth"));
    }

    let mut first = true;
    if bracket == b'[' {
        let mut items = Vec::new();
        while scanner.next_element(first)? {
            first = false;
            items.push(value(scanner, depth + 1)?);
        }
        return Ok(Value::Array(items));
    }

    let mut members = Vec::new();
    while let Some(name) = scanner.next_name(first)? {
        first = false;
        members.push((Text::new(name), value(scanner, depth + 1)?));
    }

    Ok(Value::Object(Map::from_members(members)))
}

fn as_written(value: Value, written: &[u8]) -> Value {
    let mut usual = Vec::with_capacity(written.len());
    write(&value, &mut usual);
    if usual == written {
        value
    } else {
        Value::Raw(RawJson::trusted(&String::from_utf8_lossy(written)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json::to_string;

    #[test]
    fn scalars_keep_their_notation() {
        for text in [
            "2.0",
            "1e3",
            "-0",
            "12345678901234567890",
            r#""\u0061""#,
            r#""a<b""#,
            r#"["x",{"y":2.50}]"#,
        ] {
            assert_eq!(to_string(&parse_literal(text.as_bytes()).unwrap()), text);
        }
    }

    #[test]
    fn scalars_in_canonical_notation_are_plain_values() {
        let text = br#"{"b": [1, -5, 2.5, "a\n", true, null], "a": "\u003c"}"#;
        assert_eq!(
            parse_literal(text).unwrap(),
            super::super::parse(text).unwrap()
        );
    }

    #[test]
    fn deep_and_malformed_texts_are_refused() {
        assert_eq!(
            parse_literal(b"[1,").unwrap_err().0,
            "unexpected end of JSON input"
        );

        assert_eq!(
            parse_literal(b"1 1").unwrap_err().0,
            "invalid character '1' after top-level value"
        );

        assert!(
            parse_literal("[".repeat(501).as_bytes())
                .unwrap_err()
                .0
                .contains("exceeded max depth")
        );

        assert!(parse_literal(["[".repeat(500), "]".repeat(500)].concat().as_bytes()).is_ok());
    }
}
