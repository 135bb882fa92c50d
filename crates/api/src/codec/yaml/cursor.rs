//! A position in the text, with the line and column that error texts and indentation need.

/// Reads forward through validated text. At the end it returns NUL, which validated text never
/// contains.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    mark: Mark,
}

/// A position in characters, all counted from zero.
#[derive(Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) index: usize,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor {
            text,
            offset: 0,
            mark: Mark::default(),
        }
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    pub(super) fn column(&self) -> usize {
        self.mark.column
    }

    pub(super) fn line(&self) -> usize {
        self.mark.line
    }

    /// The byte offset, for [`Cursor::slice`].
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        &self.text[from..to]
    }

    /// The byte `ahead` of the cursor; 0 at the end.
    #[inline]
    pub(super) fn at(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.offset + ahead)
            .copied()
            .unwrap_or(0)
    }

    #[inline]
    pub(super) fn here(&self) -> u8 {
        self.at(0)
    }

    pub(super) fn at_end(&self) -> bool {
        self.offset >= self.text.len()
    }

    /// Whether fewer than `count` characters are left.
    pub(super) fn fewer_than(&self, count: usize) -> bool {
        self.text.len() - self.offset < count * 4
            && self.text[self.offset..].chars().take(count).count() < count
    }

    #[inline]
    pub(super) fn blank(&self, ahead: usize) -> bool {
        matches!(self.at(ahead), b' ' | b'\t')
    }

    /// Whether there is a line break: CR, LF, NEL, LS or PS.
    #[inline]
    pub(super) fn line_break(&self, ahead: usize) -> bool {
        match self.at(ahead) {
            b'\r' | b'\n' => true,
            0xC2 => self.at(ahead + 1) == 0x85,
            0xE2 => self.at(ahead + 1) == 0x80 && matches!(self.at(ahead + 2), 0xA8 | 0xA9),
            _ => false,
        }
    }

    #[inline]
    pub(super) fn break_or_end(&self, ahead: usize) -> bool {
        self.at(ahead) == 0 || self.line_break(ahead)
    }

    #[inline]
    pub(super) fn blank_or_end(&self, ahead: usize) -> bool {
        self.blank(ahead) || self.break_or_end(ahead)
    }

    /// Whether there is a character of names: anchors, tag handles, directives.
    pub(super) fn name_character(&self) -> bool {
        self.here().is_ascii_alphanumeric() || matches!(self.here(), b'_' | b'-')
    }

    /// Whether there is `---` or `...` alone at the beginning of a line.
    pub(super) fn document_indicator(&self, sign: u8) -> bool {
        self.mark.column == 0
            && self.here() == sign
            && self.at(1) == sign
            && self.at(2) == sign
            && self.blank_or_end(3)
    }

    /// Skips one character of the line.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.offset += match self.here() {
            0..=0x7F => 1,
            0x80..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0.. => 4,
        };
        self.mark.index += 1;
        self.mark.column += 1;
    }

    pub(super) fn skip_many(&mut self, count: usize) {
        for _ in 0..count {
            self.skip();
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.blank(0) {
            self.skip();
        }
    }

    /// Skips a comment, if one begins here, up to the line break.
    pub(super) fn skip_comment(&mut self) {
        if self.here() == b'#' {
            while !self.break_or_end(0) {
                self.skip();
            }
        }
    }

    /// Skips a line break, if there is one, and returns its normalized form: LS and PS are kept,
    /// all others become a line feed.
    pub(super) fn skip_line_break(&mut self) -> Option<char> {
        if !self.line_break(0) {
            return None;
        }

        let (width, characters, stands_for) = match (self.here(), self.at(1), self.at(2)) {
            (b'\r', b'\n', _) => (2, 2, '\n'),
            (b'\r' | b'\n', _, _) => (1, 1, '\n'),
            (0xC2, _, _) => (2, 1, '\n'),
            (_, _, 0xA8) => (3, 1, '\u{2028}'),
            (_, _, _) => (3, 1, '\u{2029}'),
        };
        self.offset += width;

        self.mark = Mark {
            index: self.mark.index + characters,
            line: self.mark.line + 1,
            column: 0,
        };

        Some(stands_for)
    }

    /// The end of the stream ends its last line.
    pub(super) fn end_line(&mut self) {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }
}
