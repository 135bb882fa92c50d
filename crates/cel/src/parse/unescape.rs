//! What a string literal stands for.

/// The value of a literal with its quotes, and with the prefix of raw ones. Line ends become `\n`.
pub(crate) fn unescape(literal: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = literal.replace("\r\n", "\n").replace('\r', "\n");
    let raw = text.starts_with(['r', 'R']);
    let quoted = if raw { &text[1..] } else { &text };
    let quotes = if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""))
    {
        3
    } else {
        1
    };
    let content = &quoted[quotes..quoted.len() - quotes];
    if raw {
        return Ok(content.as_bytes().to_vec());
    }

    let mut value = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find('\\') {
        value.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], bytes, &mut value)?;
    }
    value.extend_from_slice(rest.as_bytes());
    Ok(value)
}

/// Reads one sequence after its backslash, and returns what follows it.
fn escape<'a>(text: &'a str, bytes: bool, value: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    const BAD: &str = "unable to unescape string";
    let first = *text.as_bytes().first().ok_or(BAD)?;
    let simple = match first {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' | b'\'' | b'"' | b'`' | b'?' => first,
        _ => return coded(text, first, bytes, value).ok_or(BAD)?,
    };
    value.push(simple);
    Ok(&text[1..])
}

/// Reads a sequence of digits; `None` if it is none, or not one for bytes.
fn coded<'a>(
    text: &'a str,
    first: u8,
    bytes: bool,
    value: &mut Vec<u8>,
) -> Option<Result<&'a str, &'static str>> {
    let (from, count, radix) = match first {
        b'x' | b'X' => (1, 2, 16),
        b'u' if !bytes => (1, 4, 16),
        b'U' if !bytes => (1, 8, 16),
        b'0'..=b'3' => (0, 3, 8),
        _ => return None,
    };
    let digits = text.get(from..from + count)?;
    let code = u32::from_str_radix(digits, radix).ok()?;
    let rest = &text[from + count..];

    if bytes {
        value.push(u8::try_from(code).ok()?);
        return Some(Ok(rest));
    }
    Some(match char::from_u32(code) {
        None => Err("invalid unicode code point"),
        Some(character) => {
            value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            Ok(rest)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(literal: &str, bytes: bool, expected: Result<&[u8], &'static str>) {
        assert_eq!(
            unescape(literal, bytes).as_deref().map_err(|error| *error),
            expected,
            "{literal}"
        );
    }

    #[test]
    fn escape_sequences_stand_for_characters_or_bytes() {
        check(
            r"'a\n\x41\u00e9\U0001F600\101\?'",
            false,
            Ok("a\nAé😀A?".as_bytes()),
        );
        check(r"'\xff'", false, Ok("ÿ".as_bytes()));
        check(r"'\xff\377'", true, Ok(&[0xff, 0xff]));
        check(r"'é'", true, Ok("é".as_bytes()));
        check(r"'\u00e9'", true, Err("unable to unescape string"));
        check(r"'\ud800'", false, Err("invalid unicode code point"));
        check(r"r'\n'", false, Ok(br"\n"));
        check("'''a\r\nb'''", false, Ok(b"a\nb"));
        check("''", false, Ok(b""));
    }
}
