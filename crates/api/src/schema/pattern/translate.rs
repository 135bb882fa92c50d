//! From Go's syntax to the `regex` crate's.
//!
//! Most of it is the same. What differs: Go's `\d`, `\w`, `\s`, `\b` know ASCII only; `{` that counts nothing and `[`,
//! `&&`, `--` in a class are ordinary characters; there are `\Q…\E` and octal escapes; repetitions are not repeated,
//! and count to 1000 at most, all told. Captures are not wanted, so every group is a plain one.

use super::PatternError;
use super::class;

pub(super) fn translate(text: &str) -> Result<String, PatternError> {
    let mut translator = Translator {
        whole: text,
        rest: text,
        out: String::with_capacity(text.len() + 8),
        flags: 0,
        groups: vec![Group::default()],
    };
    translator.run()?;
    if translator.groups.len() > 1 {
        return Err(PatternError::new("missing closing )", text));
    }
    Ok(translator.out)
}

struct Translator<'t> {
    whole: &'t str,
    rest: &'t str,
    out: String,
    /// The length of the flags at the end of `out`: what is repeated behind them is the piece before them.
    flags: usize,
    /// The groups around this place; the outermost is the whole expression.
    groups: Vec<Group>,
}

#[derive(Clone, Copy, Default)]
struct Group {
    /// The copies that counted repetitions in it make of their innermost part.
    copies: u32,
    /// The same for the last piece; None: there is nothing to repeat.
    last: Option<u32>,
}

impl<'t> Translator<'t> {
    fn run(&mut self) -> Result<(), PatternError> {
        // Where the repetition that stands directly before this place begins.
        let mut last_repeat: Option<&'t str> = None;
        while let Some(first) = self.rest.chars().next() {
            let before = self.rest;
            match first {
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.repeat(before, None, last_repeat)?;
                    last_repeat = Some(before);
                    continue;
                }
                '{' => {
                    if let Some((low, high, length)) = counted(self.rest) {
                        self.skip(length);
                        self.count(before, low, high, last_repeat)?;
                        last_repeat = Some(before);
                        continue;
                    }
                    self.skip(1);
                    self.literal('{');
                }
                _ => self.piece(first)?,
            }
            last_repeat = None;
        }
        Ok(())
    }

    fn piece(&mut self, first: char) -> Result<(), PatternError> {
        match first {
            '(' if self.rest[1..].starts_with('?') => return self.flags(),
            '(' => {
                self.skip(1);
                self.open("(?:");
            }
            ')' => return self.close(),
            '|' => {
                self.skip(1);
                self.out.push('|');
                self.flags = 0;
                self.group().last = None;
            }
            '^' | '$' | '.' => {
                self.skip(1);
                self.atom(first.encode_utf8(&mut [0; 4]));
            }
            '[' => {
                let (class, rest) = class::bracketed(self.rest)?;
                self.rest = rest;
                self.atom(&class);
            }
            '\\' => return self.escape(),
            other => {
                self.skip(other.len_utf8());
                self.literal(other);
            }
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), PatternError> {
        let place = match self.rest.as_bytes().get(1) {
            Some(b'A') => "\\A",
            Some(b'z') => "\\z",
            Some(b'b') => "(?-u:\\b)",
            Some(b'B') => "(?-u:\\B)",
            Some(b'C') => return Err(PatternError::new("invalid escape sequence", &self.rest[..2])),
            Some(b'Q') => {
                self.quoted();
                return Ok(());
            }
            _ => {
                if let Some((class, rest)) = class::escaped(self.rest)? {
                    self.rest = rest;
                    self.atom(&class);
                    return Ok(());
                }
                let (character, rest) = class::character(self.rest)?;
                self.rest = rest;
                self.code_point(character);
                return Ok(());
            }
        };
        self.skip(2);
        self.atom(place);
        Ok(())
    }

    /// `\Q…\E`: everything between stands for itself.
    fn quoted(&mut self) {
        let (inside, rest) = self.rest[2..].split_once("\\E").unwrap_or((&self.rest[2..], ""));
        self.rest = rest;
        inside.chars().for_each(|character| self.literal(character));
    }

    /// `(?…`: a named group, or flags, for a group or from here on.
    fn flags(&mut self) -> Result<(), PatternError> {
        let text = self.rest;
        let named = if text.len() > 4 && text[2..].starts_with("P<") {
            Some(4)
        } else {
            (text.len() > 3 && text[2..].starts_with('<')).then_some(3)
        };
        if let Some(start) = named {
            let Some(end) = text.find('>') else { return Err(PatternError::new(NAMED, text)) };
            let name = text.get(start..end).unwrap_or_default();
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return Err(PatternError::new(NAMED, &text[..=end]));
            }
            self.rest = &text[end + 1..];
            self.open("(?:");
            return Ok(());
        }
        let mut minus = false;
        let mut flagged = false;
        for (at, character) in text.char_indices().skip(2) {
            let end = at + character.len_utf8();
            match character {
                'i' | 'm' | 's' | 'U' => flagged = true,
                '-' if !minus => (minus, flagged) = (true, false),
                ':' | ')' if !minus || flagged => {
                    self.rest = &text[end..];
                    // `(?)` changes nothing, and the `regex` crate does not know it.
                    match &text[..end] {
                        "(?)" => {}
                        flags if character == ':' => self.open(flags),
                        flags => {
                            self.out.push_str(flags);
                            self.flags += flags.len();
                        }
                    }
                    return Ok(());
                }
                _ => return Err(PatternError::new(PERL, &text[..end])),
            }
        }
        Err(PatternError::new(PERL, text))
    }

    fn open(&mut self, written: &str) {
        self.out.push_str(written);
        self.flags = 0;
        self.groups.push(Group::default());
    }

    fn close(&mut self) -> Result<(), PatternError> {
        if self.groups.len() < 2 {
            return Err(PatternError::new("unexpected )", self.whole));
        }
        self.skip(1);
        let closed = self.groups.pop().unwrap_or_default();
        self.out.push(')');
        self.push(closed.copies);
        Ok(())
    }

    fn count(
        &mut self,
        before: &'t str,
        low: Option<u32>,
        high: Option<Option<u32>>,
        last_repeat: Option<&'t str>,
    ) -> Result<(), PatternError> {
        let written = &before[..before.len() - self.rest.len()];
        let bad = || PatternError::new("invalid repeat count", written);
        let low = low.filter(|low| *low <= MAX_COUNT).ok_or_else(bad)?;
        // Some(None): open at the end.
        let times = match high {
            None => low,
            Some(None) => low,
            Some(Some(high)) if high <= MAX_COUNT && low <= high => high,
            Some(Some(_)) => return Err(bad()),
        };
        self.repeat(before, Some(times), last_repeat)
    }

    /// The repetition from `before` to here, for the piece before it.
    fn repeat(
        &mut self,
        before: &'t str,
        times: Option<u32>,
        last: Option<&'t str>,
    ) -> Result<(), PatternError> {
        if self.rest.starts_with('?') {
            self.skip(1);
        }
        let up_to_here = |start: &'t str| &start[..start.len() - self.rest.len()];
        if let Some(start) = last {
            return Err(PatternError::new("invalid nested repetition operator", up_to_here(start)));
        }
        let written = up_to_here(before);
        let group = self.groups.last_mut().expect("the whole expression is a group");
        let Some(copies) = group.last else {
            return Err(PatternError::new("missing argument to repetition operator", written));
        };
        let copies = copies.max(1) * times.unwrap_or(1).max(1);
        if times.is_some_and(|times| times >= 2) && copies > MAX_COUNT {
            return Err(PatternError::new("invalid repeat count", written));
        }
        group.last = Some(copies);
        group.copies = group.copies.max(copies);
        self.out.insert_str(self.out.len() - self.flags, written);
        Ok(())
    }

    fn atom(&mut self, written: &str) {
        self.out.push_str(written);
        self.push(1);
    }

    fn literal(&mut self, character: char) {
        class::write_literal(&mut self.out, character);
        self.push(1);
    }

    /// A character given by its number, which may be half of a pair: nothing in UTF-8 matches that.
    fn code_point(&mut self, number: u32) {
        match char::from_u32(number) {
            Some(character) => self.literal(character),
            None => self.atom(class::NOTHING),
        }
    }

    fn push(&mut self, copies: u32) {
        self.flags = 0;
        let group = self.group();
        group.last = Some(copies);
        group.copies = group.copies.max(copies);
    }

    fn group(&mut self) -> &mut Group {
        self.groups.last_mut().expect("the whole expression is a group")
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}

/// `{3}`, `{3,}`, `{3,5}`: least, most and length. A number too large to read is None; `{` may also count nothing.
fn counted(text: &str) -> Option<(Option<u32>, Option<Option<u32>>, usize)> {
    let (low, rest) = number(&text[1..])?;
    let (high, rest) = match rest.strip_prefix(',') {
        None => (None, rest),
        Some(rest) if rest.starts_with('}') => (Some(None), rest),
        Some(rest) => {
            let (high, rest) = number(rest)?;
            // Too large to read: larger than allowed, too.
            (Some(Some(high.unwrap_or(u32::MAX))), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    Some((low, high, text.len() - rest.len()))
}

/// A number without leading zeros; None in it: too large.
fn number(text: &str) -> Option<(Option<u32>, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().ok(), rest))
}

const MAX_COUNT: u32 = 1000;
const NAMED: &str = "invalid named capture";
const PERL: &str = "invalid or unsupported Perl syntax";
