//! The text of an expression, and places in it.

mod issue;

use std::sync::Arc;

pub use issue::{Issue, Issues};

/// The text of an expression. Places are counted in characters, as cel-go counts them.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    text: Arc<str>,
    characters: usize,
    /// Where lines begin, the first left out: in characters and in bytes.
    lines: Vec<(u32, usize)>,
}

/// A place: lines from 1, columns from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub line: i32,
    pub column: i32,
}

impl Location {
    /// Of an error that has no place.
    pub const NONE: Self = Self {
        line: -1,
        column: -1,
    };
}

impl Source {
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut characters = 0_usize;
        for (byte, character) in text.char_indices() {
            characters += 1;
            if character == '\n' {
                lines.push((narrow(characters), byte + 1));
            }
        }
        Self {
            text: text.into(),
            characters,
            lines,
        }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many characters the text has.
    #[must_use]
    pub fn characters(&self) -> usize {
        self.characters
    }

    /// The place of a character.
    #[must_use]
    pub fn location(&self, offset: u32) -> Location {
        let line = self.lines.partition_point(|(start, _)| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |last| self.lines[last].0);
        Location {
            line: i32::try_from(line + 1).unwrap_or(i32::MAX),
            column: i32::try_from(offset - start).unwrap_or(i32::MAX),
        }
    }

    /// The text of a line, counted from 1; `None` where there is no such line, or no text at all.
    fn line(&self, line: i32) -> Option<&str> {
        let before = usize::try_from(line).ok()?.checked_sub(1)?;
        if self.text.is_empty() || before > self.lines.len() {
            return None;
        }
        let start = before.checked_sub(1).map_or(0, |last| self.lines[last].1);
        let end = self
            .lines
            .get(before)
            .map_or(self.text.len(), |(_, next)| next - 1);
        Some(&self.text[start..end])
    }
}

/// A text so long is refused before its offsets matter.
fn narrow(characters: usize) -> u32 {
    u32::try_from(characters).unwrap_or(u32::MAX)
}
