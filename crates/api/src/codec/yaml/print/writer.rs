//! Output buffer for YAML: indentation, indicators, and scalars in their four styles.

use super::style::{Properties, Style, is_break, is_printable, style};

pub(super) struct Writer {
    out: String,
    /// In characters.
    column: usize,
    /// Of the open collection; `None` outside of all.
    indent: Option<usize>,
    /// The last character needs no space after it.
    spaced: bool,
    /// The line has only indentation, dashes and the like: a collection may begin here.
    indentation: bool,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer {
            out: String::new(),
            column: 0,
            indent: None,
            spaced: true,
            indentation: true,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn indent(&self) -> Option<usize> {
        self.indent
    }

    pub(super) fn set_indent(&mut self, indent: Option<usize>) {
        self.indent = indent;
    }

    pub(super) fn deepen(&mut self) {
        self.indent = Some(self.indent.map_or(0, |indent| indent + STEP));
    }

    pub(super) fn line_is_indentation(&self) -> bool {
        self.indentation
    }

    /// Moves to the indentation, on a new line unless this one is short enough.
    pub(super) fn indent_line(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indentation || self.column > indent || (self.column == indent && !self.spaced) {
            self.line_feed();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.spaced = true;
        self.indentation = true;
    }

    pub(super) fn dash(&mut self) {
        self.space();
        self.indicator('-');
    }

    /// A key with its colon. A long or multi-line key needs the `?` notation.
    pub(super) fn key(&mut self, name: &str) {
        let properties = Properties::of(name);
        if !properties.multiline && name.len() <= SIMPLE_KEY {
            self.scalar(name, style(name, &properties, true), true);
            self.put(':');
            self.spaced = false;
            self.indentation = false;
        } else {
            self.space();
            self.indicator('?');
            self.scalar(name, style(name, &properties, false), false);
            self.indent_line();
            self.indicator(':');
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        self.scalar(text, style(text, &Properties::of(text), false), false);
    }

    /// A short word that is written unchanged.
    pub(super) fn word(&mut self, word: &str) {
        self.space();
        self.out.push_str(word);
        self.column += word.len();
        self.spaced = false;
        self.indentation = false;
    }

    fn scalar(&mut self, text: &str, style: Style, simple_key: bool) {
        let around = self.indent;
        self.indent = Some(self.indent.map_or(STEP, |indent| indent + STEP));
        match style {
            Style::Plain => self.flow_text(text, None, !simple_key),
            Style::SingleQuoted => self.flow_text(text, Some('\''), !simple_key),
            Style::DoubleQuoted => self.double_quoted(text, !simple_key),
            Style::Literal => self.literal(text),
        }
        self.indent = around;
    }

    /// An indicator after which a collection may begin on the same line.
    fn indicator(&mut self, indicator: char) {
        self.put(indicator);
        self.spaced = false;
    }

    fn space(&mut self) {
        if !self.spaced {
            self.put(' ');
        }
    }

    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }

    fn line_feed(&mut self) {
        self.put_break('\n');
    }

    fn put_break(&mut self, line_break: char) {
        self.out.push(line_break);
        self.column = 0;
    }

    /// Whether to break a long line here: at a single space, not at an end of quoted text.
    fn breaks_at(&self, text: &str, offset: usize, quoted: bool, previous: Option<char>) -> bool {
        let inner = !quoted || (offset > 0 && offset + 1 < text.len());
        self.column > WIDTH && inner && previous != Some(' ')
    }

    /// Plain, or in single quotes. Line breaks are LS or PS here: text with others has another
    /// style.
    fn flow_text(&mut self, text: &str, quote: Option<char>, may_break: bool) {
        self.space();

        if let Some(quote) = quote {
            self.put(quote);
            self.indentation = false;
        }

        let mut previous = None;
        for (offset, character) in text.char_indices() {
            if character == ' ' {
                let alone = text.as_bytes().get(offset + 1) != Some(&b' ');
                if may_break && alone && self.breaks_at(text, offset, quote.is_some(), previous) {
                    self.indent_line();
                } else {
                    self.put(' ');
                }
            } else if is_break(character) {
                self.put_break(character);
                self.indentation = true;
            } else {
                if previous.is_some_and(is_break) {
                    self.indent_line();
                }
                if Some(character) == quote {
                    self.put(character);
                }
                self.put(character);
                self.indentation = false;
            }

            previous = Some(character);
        }

        if let Some(quote) = quote {
            self.put(quote);
        }

        self.spaced = false;
        self.indentation = false;
    }

    fn double_quoted(&mut self, text: &str, may_break: bool) {
        self.space();
        self.put('"');
        self.spaced = false;
        self.indentation = false;

        // Upstream escapes everything in a text that begins with a byte order mark.
        let all = text.starts_with('\u{FEFF}');
        let mut previous = None;
        for (offset, character) in text.char_indices() {
            if all
                || !is_printable(character)
                || is_break(character)
                || matches!(character, '"' | '\\')
            {
                self.escape(character);
                previous = None;
                continue;
            }

            if character == ' ' && may_break && self.breaks_at(text, offset, true, previous) {
                self.indent_line();
                // A space at the beginning of a line is escaped with a backslash.
                if text.as_bytes().get(offset + 1) == Some(&b' ') {
                    self.put('\\');
                }
            } else {
                self.put(character);
            }

            previous = Some(character);
        }

        self.put('"');
        self.spaced = false;
        self.indentation = false;
    }

    fn escape(&mut self, character: char) {
        let code = u32::from(character);
        let escaped = match character {
            '\0' => "\\0".to_owned(),
            '\x07' => "\\a".to_owned(),
            '\x08' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\x0B' => "\\v".to_owned(),
            '\x0C' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\x1B' => "\\e".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\u{85}' => "\\N".to_owned(),
            '\u{A0}' => "\\_".to_owned(),
            '\u{2028}' => "\\L".to_owned(),
            '\u{2029}' => "\\P".to_owned(),
            _ if code <= 0xFF => format!("\\x{code:02X}"),
            _ if code <= 0xFFFF => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        self.out.push_str(&escaped);

        self.column += escaped.len();
    }

    fn literal(&mut self, text: &str) {
        self.space();
        self.put('|');

        if text.starts_with([' ', '\r', '\n', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.put('2');
        }

        let mut from_end = text.chars().rev();
        match (
            from_end.next().is_some_and(is_break),
            from_end.next().is_none_or(is_break),
        ) {
            (false, _) => self.put('-'),
            (true, true) => self.put('+'),
            (true, false) => {}
        }

        self.line_feed();
        self.spaced = true;
        self.indentation = true;

        let mut line_begins = true;
        for character in text.chars() {
            if is_break(character) {
                self.put_break(character);
                self.indentation = true;
                line_begins = true;
            } else {
                if line_begins {
                    self.indent_line();
                }
                self.put(character);
                self.indentation = false;
                line_begins = false;
            }
        }
    }
}

/// Additional indentation of a nested collection.
const STEP: usize = 2;
/// Column at which long text is broken.
const WIDTH: usize = 80;
/// Maximum length of keys without `?`, in bytes.
const SIMPLE_KEY: usize = 128;
