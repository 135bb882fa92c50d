//! Texts that upstream's messages get from Go's library: quoted strings, printed values
//! (`value.rs`), and number errors.
//!
//! Clients and tests compare these messages, so they are part of the API. Everything here is pure
//! formatting.

mod value;

pub use value::{GoList, GoString, GoSyntax, GoValue, LIST_TYPE, MAP_TYPE, go_type};

use std::fmt;

/// A string as Go's `%q` prints it: quoted, with unprintable characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("\"")?;
        for character in self.0.chars() {
            write_escaped(out, character)?;
        }
        out.write_str("\"")
    }
}

fn write_escaped(out: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    match character {
        '"' | '\\' => write!(out, "\\{character}"),
        ' '..='~' => write!(out, "{character}"),
        '\x07' => out.write_str("\\a"),
        '\x08' => out.write_str("\\b"),
        '\x0c' => out.write_str("\\f"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        '\x0b' => out.write_str("\\v"),
        '\0'..='\x7f' => write!(out, "\\x{:02x}", u32::from(character)),
        _ if is_printable(character) => write!(out, "{character}"),
        '\u{80}'..='\u{ffff}' => write!(out, "\\u{:04x}", u32::from(character)),
        _ => write!(out, "\\U{:08x}", u32::from(character)),
    }
}

/// Whether a character beyond ASCII is printable: letters, marks, numbers, punctuation and symbols.
fn is_printable(character: char) -> bool {
    // The standard library's escaping decides; it escapes a combining mark only at the start of a
    // string.
    let mut text = [b'a'; 5];
    let end = 1 + character.encode_utf8(&mut text[1..]).len();
    let text =
        std::str::from_utf8(&text[..end]).expect("one ASCII letter and one encoded character");
    text.escape_debug().nth(1) == Some(character)
}

/// A floating-point number as Go's `%v` prints it: the shortest digits, with an exponent for small
/// and large numbers.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f64);

impl fmt::Display for Float {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if !self.0.is_finite() || size == 0.0 || (1e-4..1e6).contains(&size) {
            return write!(out, "{}", self.0);
        }
        write!(out, "{}", Exponential(self.0))
    }
}

/// A number with an exponent of at least two digits: `1e-07`, `1.5e+21`.
#[derive(Clone, Copy, Debug)]
pub struct Exponential(pub f64);

impl fmt::Display for Exponential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:e}", self.0);
        let (digits, exponent) = text.split_once('e').expect("exponent form has an e");
        let (sign, exponent) = exponent
            .strip_prefix('-')
            .map_or(('+', exponent), |exponent| ('-', exponent));
        write!(out, "{digits}e{sign}{exponent:0>2}")
    }
}

/// Why a text is not a number. The texts are those of Go's `strconv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    #[error("invalid syntax")]
    Syntax,
    #[error("value out of range")]
    Range,
}

/// A decimal number with an optional sign: `strconv.ParseInt(text, 10, 64)`.
pub fn parse_int(text: &str) -> Result<i64, NumberError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    check_digits(digits)?;
    text.parse().map_err(|_| NumberError::Range)
}

/// A decimal number without a sign: `strconv.ParseUint(text, 10, 64)`.
pub fn parse_uint(text: &str) -> Result<u64, NumberError> {
    check_digits(text)?;
    text.parse().map_err(|_| NumberError::Range)
}

fn check_digits(digits: &str) -> Result<(), NumberError> {
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits {
        Ok(())
    } else {
        Err(NumberError::Syntax)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        let check = |text: &str, expected: &str| assert_eq!(Quoted(text).to_string(), expected);
        check("", r#""""#);
        check("a \"b\" \\c'", r#""a \"b\" \\c'""#);
        check("\x07\x08\x0c\n\r\t\x0b", r#""\a\b\f\n\r\t\v""#);
        check("\0\x1b\x7f", r#""\x00\x1b\x7f""#);
        check("é世\u{301}🎉", "\"é世\u{301}🎉\"");
        check(
            "\u{a0}\u{200b}\u{2028}\u{e000}\u{ad}",
            r#""\u00a0\u200b\u2028\ue000\u00ad""#,
        );
        check("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#);
    }

    #[test]
    fn floats_are_shown_as_go_shows_them() {
        let check = |number: f64, expected: &str| assert_eq!(Float(number).to_string(), expected);
        check(0.0, "0");
        check(1.5, "1.5");
        check(-20.0, "-20");
        check(100_000.0, "100000");
        check(1_000_000.0, "1e+06");
        check(123_456_789.0, "1.23456789e+08");
        check(1e21, "1e+21");
        check(1e-5, "1e-05");
        check(-1.25e-7, "-1.25e-07");
        check(0.0001, "0.0001");
    }

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let check = |text: &str, expected| assert_eq!(parse_int(text), expected, "{text:?}");
        check("0", Ok(0));
        check("+5", Ok(5));
        check("-007", Ok(-7));
        check("9223372036854775807", Ok(i64::MAX));
        check("-9223372036854775808", Ok(i64::MIN));
        check("9223372036854775808", Err(NumberError::Range));

        for bad in ["", "+", "-", "--1", "1_0", "0x1", " 1", "1.0"] {
            check(bad, Err(NumberError::Syntax));
        }

        assert_eq!(parse_uint("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_uint("18446744073709551616"), Err(NumberError::Range));
        assert_eq!(parse_uint("+1"), Err(NumberError::Syntax));
    }
}
