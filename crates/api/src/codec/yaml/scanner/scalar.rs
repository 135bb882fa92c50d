//! Plain, quoted and block scalars. Text without escapes or folding is borrowed from the input.

use std::borrow::Cow;

use super::super::Error;
use super::super::cursor::Mark;
use super::super::token::Kind;
use super::Scanner;
use super::markup::hex;

/// The text of a flow scalar: what was copied, and the offset from which the input is used
/// unchanged.
struct Collected {
    copied: Option<String>,
    from: usize,
}

/// The line breaks between two words, folded: one break becomes a space, of several the first is
/// dropped.
#[derive(Default)]
struct Fold {
    /// There was a line break, escaped or not: following blanks are indentation.
    broken: bool,
    first: Option<char>,
    rest: String,
}

impl Fold {
    fn push(&mut self, line_break: char) {
        if self.broken {
            self.rest.push(line_break);
        } else {
            self.broken = true;
            self.first = Some(line_break);
        }
    }

    fn append_to(&mut self, text: &mut String) {
        match self.first {
            Some('\n') if self.rest.is_empty() => text.push(' '),
            Some('\n') | None => text.push_str(&self.rest),
            Some(separator) => {
                text.push(separator);
                text.push_str(&self.rest);
            }
        }
        *self = Fold::default();
    }
}

impl<'a> Scanner<'a> {
    /// Copies the input up to `to`, and continues at the cursor.
    fn copy(&self, text: &mut Collected, to: usize) {
        let copied = text.copied.get_or_insert_default();
        copied.push_str(self.cursor.slice(text.from, to));
    }

    fn resume(&self, text: &mut Collected) {
        text.from = self.cursor.offset();
    }

    fn finish(&self, text: Collected, to: usize) -> Cow<'a, str> {
        let last = self.cursor.slice(text.from, to);
        match text.copied {
            None => Cow::Borrowed(last),
            Some(copied) => Cow::Owned(copied + last),
        }
    }
}

/// Plain scalars.
impl Scanner<'_> {
    pub(super) fn fetch_plain(&mut self) -> Result<(), Error> {
        self.note_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.cursor.mark();
        let mut text = Collected {
            copied: None,
            from: self.cursor.offset(),
        };

        let mut fold = Fold::default();
        let mut end = self.cursor.offset();
        while !self.plain_ends_at_line_start() && self.cursor.here() != b'#' {
            if fold.broken && !self.cursor.blank_or_end(0) && !self.plain_ends() {
                self.copy(&mut text, end);
                fold.append_to(text.copied.get_or_insert_default());
                self.resume(&mut text);
            }

            while !self.cursor.blank_or_end(0) && !self.plain_ends() {
                self.cursor.skip();
                end = self.cursor.offset();
            }

            if !self.cursor.blank(0) && !self.cursor.line_break(0) {
                break;
            }

            self.skip_plain_gap(&mut fold, mark)?;

            if !self.in_flow() && self.column() <= self.indent {
                break;
            }
        }

        if fold.broken {
            self.simple_key_allowed = true;
        }

        let text = self.finish(text, end);
        self.push(Kind::Scalar { text, plain: true }, mark);

        Ok(())
    }

    fn plain_ends_at_line_start(&self) -> bool {
        self.cursor.document_indicator(b'-') || self.cursor.document_indicator(b'.')
    }

    fn plain_ends(&self) -> bool {
        match self.cursor.here() {
            b':' => self.cursor.blank_or_end(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.in_flow(),
            _ => false,
        }
    }

    fn skip_plain_gap(&mut self, fold: &mut Fold, began: Mark) -> Result<(), Error> {
        loop {
            if let Some(line_break) = self.cursor.skip_line_break() {
                fold.push(line_break);
            } else if self.cursor.blank(0) {
                if fold.broken && self.column() <= self.indent && self.cursor.here() == b'\t' {
                    return Err(
                        self.error("found a tab character that violates indentation", began)
                    );
                }
                self.cursor.skip();
            } else {
                return Ok(());
            }
        }
    }
}

/// Quoted scalars.
impl Scanner<'_> {
    pub(super) fn fetch_quoted(&mut self, single: bool) -> Result<(), Error> {
        self.note_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.cursor.mark();
        let quote = self.cursor.here();
        self.cursor.skip();
        let mut text = Collected {
            copied: None,
            from: self.cursor.offset(),
        };

        loop {
            if self.plain_ends_at_line_start() {
                return Err(self.error("found unexpected document indicator", mark));
            }
            if self.cursor.at_end() {
                return Err(self.error("found unexpected end of stream", mark));
            }

            let mut fold = Fold::default();
            while !self.cursor.blank_or_end(0) && !fold.broken {
                match self.cursor.here() {
                    b'\'' if single && self.cursor.at(1) == b'\'' => {
                        self.copy(&mut text, self.cursor.offset() + 1);
                        self.cursor.skip_many(2);
                        self.resume(&mut text);
                    }
                    character if character == quote => break,
                    b'\\' if !single => self.scan_escape(&mut text, &mut fold, mark)?,
                    _ => self.cursor.skip(),
                }
            }

            if self.cursor.here() == quote {
                break;
            }

            self.skip_quoted_gap(&mut text, fold);
        }

        let text = self.finish(text, self.cursor.offset());
        self.cursor.skip();
        self.push(Kind::Scalar { text, plain: false }, mark);

        Ok(())
    }

    /// Blanks between two words are kept; around a line break they are dropped.
    fn skip_quoted_gap(&mut self, text: &mut Collected, mut fold: Fold) {
        let word_end = self.cursor.offset();

        loop {
            if let Some(line_break) = self.cursor.skip_line_break() {
                fold.push(line_break);
            } else if self.cursor.blank(0) {
                self.cursor.skip();
            } else {
                break;
            }
        }

        if fold.broken {
            self.copy(text, word_end);
            fold.append_to(text.copied.get_or_insert_default());
            self.resume(text);
        }
    }

    /// Expects the cursor at a backslash.
    fn scan_escape(
        &mut self,
        text: &mut Collected,
        fold: &mut Fold,
        began: Mark,
    ) -> Result<(), Error> {
        self.copy(text, self.cursor.offset());

        if self.cursor.line_break(1) {
            self.cursor.skip();
            self.cursor.skip_line_break();
            fold.broken = true;
            self.resume(text);
            return Ok(());
        }

        let (character, digits) = match self.cursor.at(1) {
            b'0' => ('\0', 0),
            b'a' => ('\x07', 0),
            b'b' => ('\x08', 0),
            b't' | b'\t' => ('\t', 0),
            b'n' => ('\n', 0),
            b'v' => ('\x0B', 0),
            b'f' => ('\x0C', 0),
            b'r' => ('\r', 0),
            b'e' => ('\x1B', 0),
            quoted @ (b' ' | b'"' | b'\'' | b'\\') => (char::from(quoted), 0),
            b'N' => ('\u{85}', 0),
            b'_' => ('\u{A0}', 0),
            b'L' => ('\u{2028}', 0),
            b'P' => ('\u{2029}', 0),
            b'x' => ('\0', 2),
            b'u' => ('\0', 4),
            b'U' => ('\0', 8),
            _ => return Err(self.error("found unknown escape character", began)),
        };

        self.cursor.skip_many(2);

        let character = if digits == 0 {
            character
        } else {
            self.scan_code(digits, began)?
        };
        text.copied.get_or_insert_default().push(character);

        self.resume(text);

        Ok(())
    }

    fn scan_code(&mut self, digits: usize, began: Mark) -> Result<char, Error> {
        let mut code = 0;
        for ahead in 0..digits {
            let Some(digit) = hex(self.cursor.at(ahead)) else {
                return Err(self.error("did not find expected hexdecimal number", began));
            };
            code = code << 4 | u32::from(digit);
        }

        let Some(character) = char::from_u32(code) else {
            return Err(self.error("found invalid Unicode character escape code", began));
        };
        self.cursor.skip_many(digits);

        Ok(character)
    }
}

/// Block scalars.
impl Scanner<'_> {
    pub(super) fn fetch_block_scalar(&mut self, literal: bool) -> Result<(), Error> {
        self.drop_simple_key()?;
        self.simple_key_allowed = true;
        let mark = self.cursor.mark();
        self.cursor.skip();
        let (chomping, increment) = self.scan_block_header(mark)?;
        self.finish_line(mark)?;
        let mut indent = increment.map(|increment| self.indent.max(0).cast_unsigned() + increment);

        let mut text = String::new();
        let mut last_break = None;
        let mut empty_lines = String::new();
        self.skip_block_indent(&mut indent, &mut empty_lines, mark)?;
        let indent = indent.expect("found with the first line");

        let mut indented_before = false;
        while self.cursor.column() == indent && !self.cursor.at_end() {
            // Folding joins two lines of text; a line that begins with a blank is kept.
            let indented = self.cursor.blank(0);
            let folded = !literal && !indented_before && !indented;
            join_lines(&mut text, last_break.take(), &mut empty_lines, folded);
            indented_before = indented;
            let from = self.cursor.offset();

            while !self.cursor.break_or_end(0) {
                self.cursor.skip();
            }

            text.push_str(self.cursor.slice(from, self.cursor.offset()));
            last_break = self.cursor.skip_line_break();
            self.skip_block_indent(&mut Some(indent), &mut empty_lines, mark)?;
        }

        if chomping != Chomping::Strip {
            text.extend(last_break);
        }

        if chomping == Chomping::Keep {
            text.push_str(&empty_lines);
        }

        self.push(
            Kind::Scalar {
                text: Cow::Owned(text),
                plain: false,
            },
            mark,
        );

        Ok(())
    }

    /// `+`, `-` and a digit, in either order.
    fn scan_block_header(&mut self, began: Mark) -> Result<(Chomping, Option<usize>), Error> {
        let mut chomping = self.scan_chomping();
        let mut increment = None;
        if self.cursor.here() == b'0' {
            return Err(self.error("found an indentation indicator equal to 0", began));
        }
        if self.cursor.here().is_ascii_digit() {
            increment = Some(usize::from(self.cursor.here() - b'0'));
            self.cursor.skip();
            chomping = chomping.or_else(|| self.scan_chomping());
        }
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn scan_chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.cursor.here() {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.cursor.skip();
        Some(chomping)
    }

    /// Skips empty lines and the indentation of the next line; the first line that is not empty
    /// sets the indentation.
    fn skip_block_indent(
        &mut self,
        indent: &mut Option<usize>,
        empty_lines: &mut String,
        began: Mark,
    ) -> Result<(), Error> {
        let mut deepest = 0;
        loop {
            let inside = |column: usize| indent.is_none_or(|indent| column < indent);
            while inside(self.cursor.column()) && self.cursor.here() == b' ' {
                self.cursor.skip();
            }

            deepest = deepest.max(self.cursor.column());

            if inside(self.cursor.column()) && self.cursor.here() == b'\t' {
                let problem = "found a tab character where an indentation space is expected";
                return Err(self.error(problem, began));
            }

            match self.cursor.skip_line_break() {
                Some(line_break) => empty_lines.push(line_break),
                None => break,
            }
        }

        if indent.is_none() {
            *indent = Some(deepest.max((self.indent + 1).cast_unsigned()).max(1));
        }

        Ok(())
    }
}

/// Writes what is between two lines of a block scalar, and clears it.
fn join_lines(text: &mut String, line_break: Option<char>, empty_lines: &mut String, folded: bool) {
    if !folded || line_break != Some('\n') {
        text.extend(line_break);
    } else if empty_lines.is_empty() {
        text.push(' ');
    }
    text.push_str(empty_lines);
    empty_lines.clear();
}

#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}
