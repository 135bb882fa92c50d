//! JSON tokenizer with upstream's syntax errors.
//!
//! Clients show the server's syntax errors to users, and some match on them, so each kind of error
//! has the text that upstream's decoder has for it. The scanner never recurses and never visits a
//! byte twice, except for strings, which are copied after their end is found.

use std::borrow::Cow;

use crate::fuzz::steps;
use crate::value::RawJson;

/// Maximum nesting of a document, raw values included.
pub const MAX_DEPTH: usize = 10_000;

/// A syntax error; the message is upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(pub String);

pub(super) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

/// A scalar or the opening of a container.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    /// The literal text.
    Number(&'a str),
    String(Cow<'a, str>),
    Open(u8),
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8]) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            steps::count(1);
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Reads a scalar, or the `{` or `[` that opens a container.
    pub(super) fn value(&mut self) -> Result<Token<'a>, SyntaxError> {
        match self.peek() {
            Some(open @ (b'{' | b'[')) => {
                self.at += 1;
                Ok(Token::Open(open))
            }
            Some(b'"') => self.string().map(|body| Token::String(body.text())),
            Some(b't') => self.literal("true").map(|()| Token::Bool(true)),
            Some(b'f') => self.literal("false").map(|()| Token::Bool(false)),
            Some(b'n') => self.literal("null").map(|()| Token::Null),
            Some(b'-' | b'0'..=b'9') => self.number().map(Token::Number),
            Some(other) => Err(invalid(other, "looking for beginning of value")),
            None => Err(end()),
        }
    }

    /// As [`Scanner::value`], with the source text of the token.
    pub(super) fn value_as_written(&mut self) -> Result<(Token<'a>, &'a [u8]), SyntaxError> {
        self.peek();
        let start = self.at;
        let token = self.value()?;
        Ok((token, &self.text[start..self.at]))
    }

    /// After an opened `[` or a value in it: whether there is another element.
    pub(super) fn next_element(&mut self, first: bool) -> Result<bool, SyntaxError> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            _ if first => Ok(true),
            Some(b',') => {
                self.at += 1;
                match self.peek() {
                    Some(b']') => Err(invalid(b']', "looking for beginning of value")),
                    _ => Ok(true),
                }
            }
            Some(other) => Err(invalid(other, "after array element")),
            None => Err(end()),
        }
    }

    /// After an opened `{` or a member of it: the next member's name, consuming the colon.
    pub(super) fn next_name(&mut self, first: bool) -> Result<Option<Cow<'a, str>>, SyntaxError> {
        Ok(self.skip_name(first)?.map(Body::text))
    }

    /// As [`Scanner::next_name`], without decoding the name.
    fn skip_name(&mut self, first: bool) -> Result<Option<Body<'a>>, SyntaxError> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            _ if first => {}
            Some(b',') => {
                self.at += 1;
            }
            Some(other) => return Err(invalid(other, "after object key:value pair")),
            None => return Err(end()),
        }

        let name = match self.peek() {
            Some(b'"') => self.string()?,
            Some(other) => {
                return Err(invalid(other, "looking for beginning of object key string"));
            }
            None => return Err(end()),
        };

        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(Some(name))
            }
            Some(other) => Err(invalid(other, "after object key")),
            None => Err(end()),
        }
    }

    /// Nothing but white space may follow the top-level value.
    pub(super) fn finish(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            None => Ok(()),
            Some(other) => Err(invalid(other, "after top-level value")),
        }
    }

    /// Reads one whole value, `depth` levels down, and keeps its text without the white space
    /// between its tokens.
    pub(super) fn raw(&mut self, depth: usize) -> Result<RawJson, SyntaxError> {
        let mut compact = Vec::new();
        self.skip(depth, Some(&mut compact))?;
        // Strings may contain invalid UTF-8; decoders replace it, and so does this.
        Ok(RawJson::trusted(&String::from_utf8_lossy(&compact)))
    }

    /// Skips one whole value.
    pub(super) fn skip(
        &mut self,
        depth: usize,
        mut copy: Option<&mut Vec<u8>>,
    ) -> Result<(), SyntaxError> {
        let mut open: Vec<u8> = Vec::new();
        let mut keep = |bytes: &[u8]| {
            if let Some(copy) = copy.as_deref_mut() {
                copy.extend_from_slice(bytes);
            }
        };

        loop {
            let found = self.peek();
            let start = self.at;

            let mut first = false;
            if found == Some(b'"') {
                self.string()?;
            } else if let Token::Open(bracket) = self.value()? {
                open.push(bracket);
                check_depth(depth + open.len(), bracket)?;
                first = true;
            }

            keep(&self.text[start..self.at]);

            // Closes what ends here, then stops before the next value.
            loop {
                let more = match open.last() {
                    None => return Ok(()),
                    Some(b'[') => self.next_element(first)?,
                    Some(_) => {
                        let name_start = self.name_start(first);
                        let more = self.skip_name(first)?.is_some();
                        if more {
                            if !first {
                                keep(b",");
                            }
                            let text = &self.text[name_start..self.at - 1];
                            keep(text.trim_ascii());
                            keep(b":");
                        }

                        more
                    }
                };

                if more {
                    if !first && open.last() == Some(&b'[') {
                        keep(b",");
                    }
                    break;
                }

                keep(if open.pop() == Some(b'[') { b"]" } else { b"}" });
                first = false;
            }
        }
    }

    /// The offset of the next member's name, if the text is well-formed.
    fn name_start(&mut self, first: bool) -> usize {
        let was = self.at;
        let found = self.peek();
        if !first && found == Some(b',') {
            self.at += 1;
            self.peek();
        }
        let start = self.at;
        self.at = was;
        start
    }

    fn literal(&mut self, word: &'static str) -> Result<(), SyntaxError> {
        for (index, expected) in word.bytes().enumerate() {
            match self.text.get(self.at) {
                Some(byte) if *byte == expected => self.at += 1,
                Some(byte) => {
                    debug_assert!(index > 0, "the caller saw the first letter");
                    let expected = char::from(expected);
                    return Err(invalid(
                        *byte,
                        &format!("in literal {word} (expecting '{expected}')"),
                    ));
                }
                None => return Err(end()),
            }
        }

        Ok(())
    }

    fn number(&mut self) -> Result<&'a str, SyntaxError> {
        let start = self.at;

        if self.text[self.at] == b'-' {
            self.at += 1;
        }

        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(other) => return Err(invalid(*other, "in numeric literal")),
            None => return Err(end()),
        }

        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }

        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }

        steps::count(self.at - start);

        Ok(std::str::from_utf8(&self.text[start..self.at]).expect("a numeric literal is ASCII"))
    }

    fn some_digits(&mut self, context: &str) -> Result<(), SyntaxError> {
        match self.text.get(self.at) {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            Some(other) => Err(invalid(*other, context)),
            None => Err(end()),
        }
    }

    fn digits(&mut self) {
        while matches!(self.text.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// Reads a string; `at` is its opening quote.
    fn string(&mut self) -> Result<Body<'a>, SyntaxError> {
        let start = self.at + 1;
        let mut at = start;

        let mut plain = true;
        loop {
            match self.text.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    at = self.escape(at + 1)?;
                }
                Some(control @ 0..=0x1f) => return Err(invalid(*control, "in string literal")),
                Some(_) => at += 1,
                None => return Err(end()),
            }
        }

        self.at = at + 1;
        steps::count(at - start);

        Ok(Body {
            bytes: &self.text[start..at],
            plain,
        })
    }

    /// Validates the escape whose letter is at `at` and returns the offset after it.
    fn escape(&self, at: usize) -> Result<usize, SyntaxError> {
        match self.text.get(at) {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => Ok(at + 1),
            Some(b'u') => {
                for index in at + 1..at + 5 {
                    match self.text.get(index) {
                        Some(byte) if byte.is_ascii_hexdigit() => {}
                        Some(other) => {
                            return Err(invalid(*other, "in \\u hexadecimal character escape"));
                        }
                        None => return Err(end()),
                    }
                }

                Ok(at + 5)
            }
            Some(other) => Err(invalid(*other, "in string escape code")),
            None => Err(end()),
        }
    }
}

/// The content of a string, between its quotes.
struct Body<'a> {
    bytes: &'a [u8],
    /// Without escapes.
    plain: bool,
}

impl<'a> Body<'a> {
    fn text(self) -> Cow<'a, str> {
        if !self.plain {
            return Cow::Owned(unescape(self.bytes));
        }
        match std::str::from_utf8(self.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.bytes),
        }
    }
}

/// Refuses the bracket that exceeds the nesting limit.
pub(super) fn check_depth(depth: usize, bracket: u8) -> Result<(), SyntaxError> {
    if depth > MAX_DEPTH {
        Err(invalid(bracket, "exceeded max depth"))
    } else {
        Ok(())
    }
}

pub(super) fn invalid(byte: u8, context: &str) -> SyntaxError {
    SyntaxError(format!("invalid character {} {context}", quote(byte)))
}

fn end() -> SyntaxError {
    SyntaxError("unexpected end of JSON input".to_string())
}

/// A byte in single quotes, as upstream's messages print it: each byte is treated as a character.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_string(),
        b'\\' => "'\\\\'".to_string(),
        0x07 => "'\\a'".to_string(),
        0x08 => "'\\b'".to_string(),
        0x0c => "'\\f'".to_string(),
        b'\n' => "'\\n'".to_string(),
        b'\r' => "'\\r'".to_string(),
        b'\t' => "'\\t'".to_string(),
        0x0b => "'\\v'".to_string(),
        0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

/// Resolves the escapes of a string that [`Scanner::escape`] has accepted. Lone surrogates and
/// bytes that are no UTF-8 become U+FFFD.
fn unescape(body: &[u8]) -> String {
    let mut out = String::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        let run = body[at..]
            .iter()
            .position(|byte| *byte == b'\\')
            .unwrap_or(body.len() - at);
        out.push_str(&String::from_utf8_lossy(&body[at..at + run]));

        at += run;
        let Some(letter) = body.get(at + 1) else {
            break;
        };
        at += 2;

        match letter {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let (character, read) = unicode(&body[at..]);
                out.push(character);
                at += read;
            }
            other => out.push(char::from(*other)),
        }
    }

    out
}

/// Decodes a `\u` escape (four digits at the start of `digits`, possibly followed by a second
/// escape). Returns the character and the number of bytes consumed.
fn unicode(digits: &[u8]) -> (char, usize) {
    let high = hex(&digits[..4]);
    if let Some(character) = char::from_u32(high) {
        return (character, 4);
    }

    if (0xd800..0xdc00).contains(&high) && digits.len() >= 10 && &digits[4..6] == b"\\u" {
        let low = hex(&digits[6..10]);
        if (0xdc00..0xe000).contains(&low) {
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            return (
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                10,
            );
        }
    }

    (char::REPLACEMENT_CHARACTER, 4)
}

fn hex(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |value, digit| {
        value * 16 + char::from(*digit).to_digit(16).unwrap_or(0)
    })
}
