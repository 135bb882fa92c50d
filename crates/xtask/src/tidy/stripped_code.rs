//! Rust code without comments and literals, so that a search finds code only. Removed bytes become
//! spaces and line breaks stay, so that offsets and lines are those of the file.

/// The stripped code of a file.
pub(super) fn code_of(text: &str) -> String {
    let source = text.as_bytes();
    let mut code = source.to_vec();

    let mut at = 0;
    while at < source.len() {
        let end = end_of_hidden(source, at);
        code[at..end.unwrap_or(at)]
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b' ');
        at = end.unwrap_or(at + 1);
    }

    String::from_utf8(code).expect("only whole characters become spaces")
}

/// Number of lines of a piece of code.
pub(super) fn lines(code: &str) -> usize {
    code.matches('\n').count() + 1
}

/// The line number of a byte, counted from one.
pub(super) fn line_of(code: &str, at: usize) -> usize {
    lines(&code[..at])
}

/// Offsets of a word in code, not as part of a longer one.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let apart = |byte: Option<&u8>| !byte.is_some_and(|byte| is_name(*byte));
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let bytes = code.as_bytes();
            apart(at.checked_sub(1).and_then(|before| bytes.get(before)))
                && apart(bytes.get(at + word.len()))
        })
}

/// Whether a byte can be part of a name.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// If a comment or literal begins at `at`, where it ends.
fn end_of_hidden(source: &[u8], at: usize) -> Option<usize> {
    let rest = &source[at..];
    match rest {
        [b'/', b'/', ..] => Some(at + find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(at + end_of_block_comment(rest)),
        [b'"', ..] => Some(at + end_of_string(rest, raw_hashes(&source[..at]))),
        [b'\'', ..] => end_of_character(rest).map(|length| at + length),
        _ => None,
    }
}

/// Block comments nest.
fn end_of_block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }

    rest.len()
}

/// The number of hashes if the quote after `before` begins a raw string.
fn raw_hashes(before: &[u8]) -> Option<usize> {
    let hashes = before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'#')
        .count();
    before[..before.len() - hashes]
        .ends_with(b"r")
        .then_some(hashes)
}

fn end_of_string(rest: &[u8], raw: Option<usize>) -> usize {
    if let Some(hashes) = raw {
        let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
        return find(&rest[1..], &end).map_or(rest.len(), |at| 1 + at + end.len());
    }

    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }

    rest.len()
}

/// A quote begins a character, unless it begins a lifetime.
fn end_of_character(rest: &[u8]) -> Option<usize> {
    match rest {
        [_, b'\\', _, after @ ..] => Some(3 + find(after, b"'")? + 1),
        [_, first, ..] => {
            let length = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0.. => 4,
            };
            (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
        }
        _ => None,
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_not() {
        check("a // todo!()\nb", "a           \nb");
        check("a /* x /* y */ z */ b", "a                   b");
        check(r#"a("unsafe \" x") b"#, r"a(             ) b");
        check(r##"a(r#"x "y" z"#) b"##, "a(r#          ) b");
        check("a(br\"\\\") b", "a(br   ) b");
        check(
            r"match c { '\'' => '{', '\u{7d}' => '}' }",
            "match c {      =>    ,          =>     }",
        );

        check(
            "fn f<'a>(x: &'a str) -> char { 'ä' }",
            "fn f<'a>(x: &'a str) -> char {      }",
        );

        check("r#fn", "r#fn");
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(code_of(text), expected, "{text}");
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert_eq!(
            words("unsafe_code unsafe { not_unsafe }", "unsafe").collect::<Vec<_>>(),
            [12]
        );
    }
}
