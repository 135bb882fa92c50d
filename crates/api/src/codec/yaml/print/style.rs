//! Selects the style of a printed string.

use super::super::resolve;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// Properties of a string that limit its style.
pub(super) struct Properties {
    /// Has line breaks.
    pub(super) multiline: bool,
    plain: bool,
    single_quoted: bool,
    block: bool,
}

/// The style of a string; a simple key has fewer options.
pub(super) fn style(text: &str, properties: &Properties, simple_key: bool) -> Style {
    let quotes = resolve::needs_quotes(text);

    if text.contains('\n') {
        return if properties.block && !simple_key {
            Style::Literal
        } else {
            Style::DoubleQuoted
        };
    }

    // Upstream prints a key `<<` plain, and reads it as a merge key: here it round-trips.
    if quotes || (simple_key && (properties.multiline || text == "<<")) {
        return Style::DoubleQuoted;
    }

    match (properties.plain, properties.single_quoted) {
        (true, _) => Style::Plain,
        (false, true) => Style::SingleQuoted,
        (false, false) => Style::DoubleQuoted,
    }
}

impl Properties {
    pub(super) fn of(text: &str) -> Properties {
        let mut multiline = false;
        let mut special = false;
        let mut space_break = false;
        let mut break_space = false;

        let mut previous = None;
        for character in text.chars() {
            special |= !is_printable(character);
            multiline |= is_break(character);
            space_break |= previous == Some(' ') && is_break(character);
            break_space |= previous.is_some_and(is_break) && character == ' ';
            previous = Some(character);
        }

        let outer =
            |character: Option<char>| character.is_some_and(|edge| edge == ' ' || is_break(edge));
        let open_ends = outer(text.chars().next()) || outer(text.chars().next_back());
        let double_only = space_break || special;

        Properties {
            multiline,
            plain: !(open_ends || break_space || double_only || multiline || has_indicators(text)),
            single_quoted: !(break_space || double_only),
            block: !text.is_empty() && !text.ends_with(' ') && !double_only,
        }
    }
}

/// Whether an indicator in the text would end or change a plain scalar.
fn has_indicators(text: &str) -> bool {
    let bytes = text.as_bytes();
    let space_at = |offset: usize| {
        bytes
            .get(offset)
            .is_none_or(|byte| matches!(byte, b' ' | b'\t'))
    };

    let first = match bytes.first() {
        Some(first) if b"#,[]{}&*!|>'\"%@`".contains(first) => true,
        Some(b'?' | b':' | b'-') => space_at(1),
        _ => false,
    };

    let inner = |(offset, byte): (usize, &u8)| match byte {
        b':' => space_at(offset + 1),
        b'#' => offset > 0 && space_at(offset - 1),
        _ => false,
    };

    first
        || text.starts_with("---")
        || text.starts_with("...")
        || bytes.iter().enumerate().any(inner)
}

/// Whether the character needs no escape. Tabs, and all beyond the basic plane, are escaped.
pub(super) fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}')
        && character != '\u{FEFF}'
}

pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
