//! The longest token at the beginning of a text.

use super::Kind;

/// The kind and length of the longest token. Where there is none: how many bytes were read before
/// no token could go on.
pub(super) fn longest(text: &[u8]) -> Result<(Kind, usize), usize> {
    let first = text[0];
    match first {
        b'\t' | b' ' | b'\r' | b'\n' | 0x0c => Ok((Kind::Whitespace, count(text, is_space))),
        b'0'..=b'9' => Ok(number(text)),
        b'"' | b'\'' => string(text, 0).map(|length| (Kind::String, length)),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(word(text)),
        b'`' => escaped_identifier(text),
        _ => symbol(text),
    }
}

fn count(text: &[u8], fits: fn(u8) -> bool) -> usize {
    text.iter().take_while(|byte| fits(**byte)).count()
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn symbol(text: &[u8]) -> Result<(Kind, usize), usize> {
    let next = text.get(1).copied();
    let one = |kind| Ok((kind, 1));
    match (text[0], next) {
        (b'=', Some(b'=')) => Ok((Kind::Equals, 2)),
        (b'!', Some(b'=')) => Ok((Kind::NotEquals, 2)),
        (b'<', Some(b'=')) => Ok((Kind::LessEquals, 2)),
        (b'>', Some(b'=')) => Ok((Kind::GreaterEquals, 2)),
        (b'&', Some(b'&')) => Ok((Kind::And, 2)),
        (b'|', Some(b'|')) => Ok((Kind::Or, 2)),
        (b'=' | b'&' | b'|', _) => Err(1),
        (b'/', Some(b'/')) => Ok((Kind::Comment, count(text, |byte| byte != b'\n'))),
        (b'.', Some(b'0'..=b'9')) => {
            let digits = 1 + count(&text[1..], is_digit);
            Ok((Kind::Float, digits + exponent(&text[digits..])))
        }
        (b'!', _) => one(Kind::Exclam),
        (b'<', _) => one(Kind::Less),
        (b'>', _) => one(Kind::Greater),
        (b'[', _) => one(Kind::LeftBracket),
        (b']', _) => one(Kind::RightBracket),
        (b'{', _) => one(Kind::LeftBrace),
        (b'}', _) => one(Kind::RightBrace),
        (b'(', _) => one(Kind::LeftParen),
        (b')', _) => one(Kind::RightParen),
        (b'.', _) => one(Kind::Dot),
        (b',', _) => one(Kind::Comma),
        (b'-', _) => one(Kind::Minus),
        (b'?', _) => one(Kind::Question),
        (b':', _) => one(Kind::Colon),
        (b'+', _) => one(Kind::Plus),
        (b'*', _) => one(Kind::Star),
        (b'/', _) => one(Kind::Slash),
        (b'%', _) => one(Kind::Percent),
        _ => Err(0),
    }
}

/// How long the exponent is; 0 if there is none.
fn exponent(text: &[u8]) -> usize {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    match count(&text[1 + sign..], is_digit) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

fn number(text: &[u8]) -> (Kind, usize) {
    let suffix = |at: usize| matches!(text.get(at), Some(b'u' | b'U'));

    if text.starts_with(b"0x") {
        let digits = count(&text[2..], is_hex);
        if digits > 0 {
            let end = 2 + digits;
            return if suffix(end) {
                (Kind::Uint, end + 1)
            } else {
                (Kind::Int, end)
            };
        }
    }

    let whole = count(text, is_digit);
    if suffix(whole) {
        return (Kind::Uint, whole + 1);
    }
    let fraction = match text.get(whole) {
        Some(b'.') => count(&text[whole + 1..], is_digit),
        _ => 0,
    };
    let mantissa = if fraction > 0 {
        whole + 1 + fraction
    } else {
        whole
    };
    let end = mantissa + exponent(&text[mantissa..]);
    if end > whole {
        (Kind::Float, end)
    } else {
        (Kind::Int, whole)
    }
}

/// A word, or a string with a prefix where it is longer.
fn word(text: &[u8]) -> (Kind, usize) {
    let length = count(text, is_word);
    let prefix = match text {
        [b'b' | b'B', b'r' | b'R', b'"' | b'\'', ..] => Some((Kind::Bytes, 2)),
        [b'b' | b'B', b'"' | b'\'', ..] => Some((Kind::Bytes, 1)),
        [b'r' | b'R', b'"' | b'\'', ..] => Some((Kind::String, 1)),
        _ => None,
    };
    if let Some((kind, prefix)) = prefix
        && let Ok(end) = string(text, prefix)
    {
        return (kind, end);
    }

    let kind = match &text[..length] {
        b"in" => Kind::In,
        b"true" => Kind::True,
        b"false" => Kind::False,
        b"null" => Kind::Null,
        _ => Kind::Identifier,
    };
    (kind, length)
}

/// The end of a string whose quotes begin at `at`. It is raw after a prefix that ends in `r`.
fn string(text: &[u8], at: usize) -> Result<usize, usize> {
    let raw = at > 0 && matches!(text[at - 1], b'r' | b'R');
    let quote = text[at];

    if text[at..].starts_with(&[quote; 3]) {
        // The first two quotes are a string too: an empty one.
        return Ok(long_string(text, at + 3, quote, raw).unwrap_or(at + 2));
    }

    let mut end = at + 1;
    loop {
        match text.get(end) {
            None | Some(b'\n' | b'\r') => return Err(end),
            Some(byte) if *byte == quote => return Ok(end + 1),
            Some(b'\\') if !raw => end = escape(text, end)?,
            Some(_) => end += 1,
        }
    }
}

/// The end of a string in three quotes, whose content begins at `at`.
fn long_string(text: &[u8], at: usize, quote: u8, raw: bool) -> Option<usize> {
    let mut end = at;
    loop {
        let rest = text.get(end..)?;
        match rest.first()? {
            _ if rest.starts_with(&[quote; 3]) => return Some(end + 3),
            b'\\' if !raw => end = escape(text, end).ok()?,
            _ => end += 1,
        }
    }
}

/// The end of the escape sequence that begins at `at`; else where it failed.
fn escape(text: &[u8], at: usize) -> Result<usize, usize> {
    let digits = |count: usize, from: usize, fits: fn(u8) -> bool| {
        let end = from + count;
        match (from..end).find(|index| !text.get(*index).is_some_and(|byte| fits(*byte))) {
            Some(failed) => Err(failed),
            None => Ok(end),
        }
    };

    match text.get(at + 1) {
        Some(
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`',
        ) => Ok(at + 2),
        Some(b'0'..=b'3') => digits(2, at + 2, |byte| matches!(byte, b'0'..=b'7')),
        Some(b'x' | b'X') => digits(2, at + 2, is_hex),
        Some(b'u') => digits(4, at + 2, is_hex),
        Some(b'U') => digits(8, at + 2, is_hex),
        _ => Err(at + 1),
    }
}

fn escaped_identifier(text: &[u8]) -> Result<(Kind, usize), usize> {
    let inner = count(&text[1..], |byte| {
        is_word(byte) || matches!(byte, b'.' | b'-' | b'/' | b' ')
    });
    match text.get(1 + inner) {
        Some(b'`') if inner > 0 => Ok((Kind::EscapedIdentifier, inner + 2)),
        _ => Err(1 + inner),
    }
}
