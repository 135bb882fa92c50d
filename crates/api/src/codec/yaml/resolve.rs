//! Determines the type of a scalar: YAML 1.1 as upstream reads it.
//!
//! Booleans are also `yes`, `no`, `on`, `off`, `y` and `n`; integers are decimal, `0x`, `0b`, `0o`
//! or `0` octal, with underscores anywhere; a date is a string, but one that must be quoted when
//! printed. Base 60 is not supported.

use std::borrow::Cow;

use super::Error;
use super::number;
use super::tape::{Scalar, Tag};
use super::timestamp;

/// A scalar with its resolved type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Resolved<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond the range of `Int`.
    Uint(u64),
    Float(f64),
    Text(Cow<'a, str>),
}

impl Resolved<'_> {
    fn tag(&self) -> Tag {
        match self {
            Resolved::Null => Tag::Null,
            Resolved::Bool(_) => Tag::Bool,
            Resolved::Int(_) | Resolved::Uint(_) => Tag::Int,
            Resolved::Float(_) => Tag::Float,
            Resolved::Text(_) => Tag::Str,
        }
    }
}

pub(super) fn resolve<'a>(scalar: &'a Scalar<'_>) -> Result<Resolved<'a>, Error> {
    let text = scalar.text.as_ref();
    match scalar.tag {
        Tag::None if scalar.implicit => Ok(plain(text)),
        Tag::None | Tag::Other | Tag::Str | Tag::Merge => Ok(Resolved::Text(Cow::Borrowed(text))),
        Tag::Binary => number::base64(text)
            .map(|text| Resolved::Text(Cow::Owned(text)))
            .ok_or(Error::Binary),
        Tag::Timestamp if timestamp::is_timestamp(text) => Ok(Resolved::Text(Cow::Borrowed(text))),
        wanted => tagged(text, wanted),
    }
}

/// The text must match its tag; only an integer may be tagged as a float.
fn tagged(text: &str, wanted: Tag) -> Result<Resolved<'_>, Error> {
    let found = plain(text);
    match (wanted, found) {
        #[expect(clippy::cast_precision_loss, reason = "the tag requests a float")]
        (Tag::Float, Resolved::Int(number)) => Ok(Resolved::Float(number as f64)),
        (wanted, found) if found.tag() == wanted => Ok(found),
        (wanted, found) => Err(Error::Tag {
            found: short(found.tag()),
            text: text.to_owned(),
            wanted: short(wanted),
        }),
    }
}

fn short(tag: Tag) -> &'static str {
    match tag {
        Tag::Null => "!!null",
        Tag::Bool => "!!bool",
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Timestamp => "!!timestamp",
        _ => "!!str",
    }
}

/// The type of a plain scalar without a tag.
pub(super) fn plain(text: &str) -> Resolved<'_> {
    let number = match text.as_bytes().first() {
        None => return Resolved::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            word(text)
        }
        Some(b'.') => word(text).or_else(|| number::dotted_float(text).map(Resolved::Float)),
        Some(b'+' | b'-' | b'0'..=b'9') => word(text).or_else(|| signed_or_digit(text)),
        Some(_) => None,
    };
    number.unwrap_or(Resolved::Text(Cow::Borrowed(text)))
}

fn word(text: &str) -> Option<Resolved<'static>> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Resolved::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Resolved::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Resolved::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn signed_or_digit(text: &str) -> Option<Resolved<'static>> {
    let digits = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    number::int(&digits)
        .map(Resolved::Int)
        .or_else(|| number::uint(&digits).map(Resolved::Uint))
        .or_else(|| number::float(&digits).map(Resolved::Float))
        .or_else(|| number::signed_binary(&digits).map(Resolved::Int))
}

/// Whether this string, printed plain, would be read as something else.
pub(super) fn needs_quotes(text: &str) -> bool {
    !matches!(plain(text), Resolved::Text(_)) || timestamp::is_timestamp(text) || is_base_60(text)
}

/// Other YAML 1.1 readers parse `1:30` as a number.
fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = digits.split(':');
    let first = parts.next().unwrap_or("");

    let mut sixtieths = 0;
    let all_sixtieths = parts.all(|part| {
        sixtieths += 1;
        match part.as_bytes() {
            [digit] => digit.is_ascii_digit(),
            [ten, digit] => matches!(ten, b'0'..=b'5') && digit.is_ascii_digit(),
            _ => false,
        }
    });

    let digit_or_underscore = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    first.starts_with(|first: char| first.is_ascii_digit())
        && first.bytes().all(digit_or_underscore)
        && sixtieths > 0
        && all_sixtieths
        && fraction.bytes().all(digit_or_underscore)
}
