//! Sanitizes untrusted text for display: one line, bounded length, no control characters.

use std::io;

/// The limit of displayed text.
const LONGEST: usize = 160;

/// Escapes control characters and truncates long text.
pub(super) fn legible(text: &str) -> String {
    let mut shown = String::new();
    for char in text.chars() {
        if shown.len() >= LONGEST {
            return shown + "…";
        }

        // Collapse repeated replacement characters of invalid UTF-8.
        match char {
            char::REPLACEMENT_CHARACTER if shown.ends_with(char) => {}
            '"' | '\'' | '\\' => shown.push(char),
            char => shown.extend(char.escape_debug()),
        }
    }

    shown
}

/// Sanitizes an error: those of the tar parser quote the archive.
pub(super) fn legible_error(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), legible(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let check = |text: &str, expected: &str| assert_eq!(legible(text), expected, "{text:?}");
        check("plain: \"quoted\", äöü", "plain: \"quoted\", äöü");
        check("a\u{1b}[2Jb\0\n", "a\\u{1b}[2Jb\\0\\n");
        check("\u{9b}x\u{202e}", "\\u{9b}x\\u{202e}");
        check(
            &String::from_utf8_lossy(&[b'a', 0xff, 0xfe, 0xff, b'b']),
            "a\u{fffd}b",
        );
        check(&"x".repeat(1000), &format!("{}…", "x".repeat(LONGEST)));
    }
}
