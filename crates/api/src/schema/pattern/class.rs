//! Characters and character classes in a regular expression.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use super::PatternError;

/// A class without characters.
pub(super) const NOTHING: &str = "[a&&b]";

/// Writes a literal character.
pub(super) fn write_literal(out: &mut String, character: char) {
    if character.is_ascii_alphanumeric()
        || !character.is_ascii()
        || matches!(character, '_' | '/' | ' ')
    {
        out.push(character);
    } else {
        write_code(out, character);
    }
}

fn write_code(out: &mut String, character: char) {
    write!(out, "\\x{{{:x}}}", u32::from(character)).expect("a String takes everything");
}

/// A class in brackets, and the rest.
pub(super) fn bracketed(text: &str) -> Result<(String, &str), PatternError> {
    let mut rest = &text[1..];
    let mut out = String::from("[");
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }

    let opened = out.len();

    // After the last end of a name there are no more names.
    let names = text.rfind(":]").map_or(0, |end| text.len() - end);
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;

        if let Some((name, behind)) = posix(rest, names)? {
            out.push_str(name);
            rest = behind;
        } else if let Some((class, behind)) = escaped(rest)? {
            out.push_str(&class);
            rest = behind;
        } else {
            rest = range(&mut out, rest, text)?;
        }
    }

    if out.len() == opened {
        // Only surrogates: nothing, or everything.
        out.push_str(NOTHING);
    }

    out.push(']');

    Ok((out, &rest[1..]))
}

/// One character of a class, or a range of them.
fn range<'t>(out: &mut String, text: &'t str, class: &str) -> Result<&'t str, PatternError> {
    let (low, mut rest) = member(text, class)?;
    let mut high = low;
    if rest.starts_with('-') && !rest[1..].is_empty() && !rest[1..].starts_with(']') {
        (high, rest) = member(&rest[1..], class)?;
        if high < low {
            return Err(PatternError::new(RANGE, &text[..text.len() - rest.len()]));
        }
    }

    // Surrogates are no characters: the range begins after them, or ends before.
    let low = char::from_u32(low).unwrap_or('\u{e000}');
    let high = char::from_u32(high).unwrap_or('\u{d7ff}');
    if low <= high {
        write_code(out, low);
        out.push('-');
        write_code(out, high);
    }

    Ok(rest)
}

fn member<'t>(text: &'t str, class: &str) -> Result<(u32, &'t str), PatternError> {
    match text.chars().next() {
        None => Err(PatternError::new("missing closing ]", class)),
        Some('\\') => character(text),
        Some(other) => Ok((u32::from(other), &text[other.len_utf8()..])),
    }
}

/// `[:alpha:]`, `[:^digit:]`.
fn posix(text: &str, names: usize) -> Result<Option<(&str, &str)>, PatternError> {
    let named = text
        .strip_prefix("[:")
        .filter(|rest| rest.len() >= names && names > 0);
    let Some(end) = named.and_then(|rest| rest.find(":]")) else {
        return Ok(None);
    };
    let (whole, rest) = text.split_at(end + 4);
    let name = &whole[2..end + 2];

    let known = POSIX.contains(&name.strip_prefix('^').unwrap_or(name));
    if known {
        Ok(Some((whole, rest)))
    } else {
        Err(PatternError::new(RANGE, whole))
    }
}

/// `\d`, `\pL`, `\p{Greek}` and the like, and the rest.
pub(super) fn escaped(text: &str) -> Result<Option<(String, &str)>, PatternError> {
    let class = match text.get(..2) {
        Some("\\d") => "[0-9]",
        Some("\\D") => "[^0-9]",
        Some("\\s") => "[\\t\\n\\x0c\\r ]",
        Some("\\S") => "[^\\t\\n\\x0c\\r ]",
        Some("\\w") => "[0-9A-Za-z_]",
        Some("\\W") => "[^0-9A-Za-z_]",
        Some("\\p" | "\\P") => return unicode(text),
        _ => return Ok(None),
    };
    Ok(Some((class.to_owned(), &text[2..])))
}

/// Approximate number of ranges of a class written so.
pub(super) fn ranges(written: &str) -> usize {
    let letters = written.matches("{gc=L").count();
    let named = written.matches("\\p{").count() + written.matches("\\P{").count();
    1 + written.matches('-').count() + LETTERS * letters + OTHERS * named.saturating_sub(letters)
}

/// Whether a category or script of the name exists. Results are cached.
fn is_known(class: &str) -> bool {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known().contains(class) {
        return true;
    }
    let is_known = regex_syntax::parse(class).is_ok();
    if is_known {
        known().insert(class.to_owned());
    }
    is_known
}

/// The number of ranges of letters, an upper bound for most other categories and scripts.
const LETTERS: usize = 650;
const OTHERS: usize = 250;

fn unicode(text: &str) -> Result<Option<(String, &str)>, PatternError> {
    let Some(first) = text[2..].chars().next() else {
        return Ok(None);
    };
    let (name, rest) = if first == '{' {
        let Some(end) = text.find('}') else {
            return Err(PatternError::new(RANGE, text));
        };
        (&text[3..end], &text[end + 1..])
    } else {
        text[2..].split_at(first.len_utf8())
    };
    let written = &text[..text.len() - rest.len()];

    let negated = text.starts_with("\\P") != name.starts_with('^');
    let name = name.strip_prefix('^').unwrap_or(name);
    let letter = if negated { 'P' } else { 'p' };
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' '));

    // Go has categories and scripts, and these three.
    let spellings = match name.to_ascii_lowercase().as_str() {
        "any" | "ascii" | "assigned" => vec![format!("\\{letter}{{{name}}}")],
        _ if plain && !name.is_empty() => {
            vec![
                format!("\\{letter}{{gc={name}}}"),
                format!("\\{letter}{{sc={name}}}"),
            ]
        }
        _ => Vec::new(),
    };
    let known = spellings.into_iter().find(|class| is_known(class));

    known
        .map(|class| Some((class, rest)))
        .ok_or_else(|| PatternError::new(RANGE, written))
}

/// The code point of an escaped character, and the rest.
pub(super) fn character(text: &str) -> Result<(u32, &str), PatternError> {
    let Some(escaped) = text[1..].chars().next() else {
        return Err(PatternError::new(
            "trailing backslash at end of expression",
            "",
        ));
    };
    let rest = &text[1 + escaped.len_utf8()..];

    let bad =
        |rest: &str| PatternError::new("invalid escape sequence", &text[..text.len() - rest.len()]);
    let control = match escaped {
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        'x' => return hexadecimal(rest).map_err(bad),
        '0' => return Ok(octal(&text[1..])),
        '1'..='7' if rest.starts_with(|digit| matches!(digit, '0'..='7')) => {
            return Ok(octal(&text[1..]));
        }
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => u32::from(other),
        _ => return Err(bad(rest)),
    };

    Ok((control, rest))
}

/// Up to three digits.
fn octal(text: &str) -> (u32, &str) {
    let length = text
        .bytes()
        .take(3)
        .take_while(|byte| matches!(byte, b'0'..=b'7'))
        .count();

    let (digits, rest) = text.split_at(length);
    (
        digits
            .bytes()
            .fold(0, |number, digit| number * 8 + u32::from(digit - b'0')),
        rest,
    )
}

/// `41`, or `{1F600}`; the error is the unread text.
fn hexadecimal(text: &str) -> Result<(u32, &str), &str> {
    let after = |from: &'_ str, characters: usize| -> usize {
        from.chars()
            .take(characters)
            .map(char::len_utf8)
            .sum::<usize>()
    };

    if let Some(inside) = text.strip_prefix('{') {
        let mut number = 0u32;
        for (at, character) in inside.char_indices() {
            let behind = &inside[at + character.len_utf8()..];
            match character.to_digit(16) {
                Some(digit) if number * 16 + digit <= 0x10_ffff => number = number * 16 + digit,
                None if character == '}' && at > 0 => return Ok((number, behind)),
                _ => return Err(behind),
            }
        }

        return Err("");
    }

    let digits: Vec<Option<u32>> = text
        .chars()
        .take(2)
        .map(|character| character.to_digit(16))
        .collect();

    let rest = &text[after(text, 2)..];
    match digits.as_slice() {
        [Some(high), Some(low)] => Ok((high * 16 + low, rest)),
        _ => Err(rest),
    }
}

const RANGE: &str = "invalid character class range";
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];
