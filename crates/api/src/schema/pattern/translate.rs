//! Translates Go's syntax to the `regex` crate's.
//!
//! Most of it is the same. Differences: Go's `\d`, `\w`, `\s`, `\b` are ASCII only; a `{` that is
//! no repetition and `[`, `&&`, `--` in a class are literals; there are `\Q…\E` and octal escapes;
//! repetitions cannot be repeated, and are limited to 1000 in total. Captures are not needed, so
//! every group is a plain one.

use super::class;
use super::{DEEP, LARGE, MAX_NESTING, MAX_RANGES, MAX_STEPS, PatternError};

/// An expression for the `regex` crate, and its size.
#[derive(Clone, Debug)]
pub(super) struct Translated {
    pub(super) text: Box<str>,
    /// Steps of single characters, copies counted.
    pub(super) steps: usize,
    /// Ranges of the classes, without copies.
    pub(super) ranges: usize,
    /// Ranges, copies counted.
    pub(super) copied: usize,
    /// Nesting depth.
    pub(super) height: usize,
}

pub(super) fn translate(text: &str) -> Result<Translated, PatternError> {
    let mut translator = Translator {
        whole: text,
        rest: text,
        out: String::with_capacity(text.len() + 8),
        flags: 0,
        ranges: 0,
        groups: vec![Group::default()],
    };
    translator.run()?;

    if translator.groups.len() > 1 {
        return Err(PatternError::new("missing closing )", text));
    }

    let Size {
        steps,
        copied,
        height,
    } = translator.groups.pop().unwrap_or_default().size();

    let (text, ranges) = (translator.out.into(), translator.ranges);
    Ok(Translated {
        text,
        steps,
        ranges,
        copied,
        height,
    })
}

struct Translator<'t> {
    whole: &'t str,
    rest: &'t str,
    out: String,
    /// The length of the flags at the end of `out`: a repetition after them applies to the piece
    /// before them.
    flags: usize,
    /// Number of ranges of the classes so far.
    ranges: usize,
    /// The enclosing groups; the outermost is the whole expression.
    groups: Vec<Group>,
}

/// The size of a compiled piece.
#[derive(Clone, Copy, Default)]
struct Size {
    steps: usize,
    copied: usize,
    height: usize,
}

impl Size {
    /// One character, or a class of that many ranges.
    fn of(ranges: usize) -> Size {
        Size {
            steps: 1,
            copied: ranges,
            height: 1,
        }
    }

    fn and(self, other: Size) -> Size {
        Size {
            steps: self.steps.saturating_add(other.steps),
            copied: self.copied.saturating_add(other.copied),
            height: self.height.max(other.height),
        }
    }

    fn times(self, times: usize) -> Size {
        Size {
            steps: self
                .steps
                .saturating_add(1)
                .saturating_mul(times)
                .saturating_add(2),
            copied: self.copied.saturating_mul(times),
            height: self.height + 1,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Group {
    /// The copies that counted repetitions in it make of their innermost part.
    copies: u32,
    /// The same for the last piece; `None`: there is nothing to repeat.
    last: Option<u32>,
    /// Size of all pieces but the last.
    before: Size,
    last_size: Size,
    pieces: usize,
    alternatives: usize,
    captures: bool,
}

impl Group {
    fn size(&self) -> Size {
        let mut size = self.before.and(self.last_size);
        size.steps = size
            .steps
            .saturating_add(self.alternatives + 2 * usize::from(self.captures));
        size.height += usize::from(self.pieces > 1)
            + usize::from(self.alternatives > 0)
            + usize::from(self.captures);
        size
    }
}

impl<'t> Translator<'t> {
    fn run(&mut self) -> Result<(), PatternError> {
        // The start of the repetition directly before the current position.
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
                    self.literal('{')?;
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
                self.open("(?:", true)?;
            }
            ')' => return self.close(),
            '|' => {
                self.skip(1);
                self.out.push('|');
                self.flags = 0;
                self.group().last = None;
                self.group().alternatives += 1;
            }
            '^' | '$' | '.' => {
                self.skip(1);
                return self.atom(first.encode_utf8(&mut [0; 4]));
            }
            '[' => {
                let (class, rest) = class::bracketed(self.rest)?;
                self.rest = rest;
                return self.atom(&class);
            }
            '\\' => return self.escape(),
            other => {
                self.skip(other.len_utf8());
                return self.literal(other);
            }
        }

        Ok(())
    }

    fn escape(&mut self) -> Result<(), PatternError> {
        let written = match self.rest.as_bytes().get(1) {
            Some(b'A') => "\\A",
            Some(b'z') => "\\z",
            Some(b'b') => "(?-u:\\b)",
            Some(b'B') => "(?-u:\\B)",
            Some(b'C') => {
                return Err(PatternError::new(
                    "invalid escape sequence",
                    &self.rest[..2],
                ));
            }
            Some(b'Q') => return self.quoted(),
            _ => {
                if let Some((class, rest)) = class::escaped(self.rest)? {
                    self.rest = rest;
                    return self.atom(&class);
                }
                let (character, rest) = class::character(self.rest)?;
                self.rest = rest;
                return self.code_point(character);
            }
        };

        self.skip(2);
        self.atom(written)
    }

    /// `\Q…\E`: everything between is literal.
    fn quoted(&mut self) -> Result<(), PatternError> {
        let (inside, rest) = self.rest[2..]
            .split_once("\\E")
            .unwrap_or((&self.rest[2..], ""));
        self.rest = rest;
        inside
            .chars()
            .try_for_each(|character| self.literal(character))
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
            let Some(end) = text.find('>') else {
                return Err(PatternError::new(NAMED, text));
            };

            let name = text.get(start..end).unwrap_or_default();
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return Err(PatternError::new(NAMED, &text[..=end]));
            }

            self.rest = &text[end + 1..];
            return self.open("(?:", true);
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

                    // `(?)` changes nothing, and the `regex` crate does not support it.
                    match &text[..end] {
                        "(?)" => {}
                        flags if character == ':' => self.open(flags, false)?,
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

    fn open(&mut self, written: &str, captures: bool) -> Result<(), PatternError> {
        if self.groups.len() > MAX_NESTING {
            return Err(PatternError::new(DEEP, self.whole));
        }
        self.out.push_str(written);
        self.flags = 0;
        self.groups.push(Group {
            captures,
            ..Group::default()
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), PatternError> {
        if self.groups.len() < 2 {
            return Err(PatternError::new("unexpected )", self.whole));
        }
        self.skip(1);
        let closed = self.groups.pop().unwrap_or_default();
        self.out.push(')');
        self.push(closed.copies, closed.size())
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
        // Some(None): unbounded.
        let times = match high {
            None => low,
            Some(None) => low,
            Some(Some(high)) if high <= MAX_COUNT && low <= high => high,
            Some(Some(_)) => return Err(bad()),
        };
        self.repeat(before, Some(times), last_repeat)
    }

    /// Writes the repetition from `before` to here, for the piece before it.
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
            return Err(PatternError::new(
                "invalid nested repetition operator",
                up_to_here(start),
            ));
        }

        let written = up_to_here(before);
        let group = self
            .groups
            .last_mut()
            .expect("the whole expression is a group");

        let Some(copies) = group.last else {
            return Err(PatternError::new(
                "missing argument to repetition operator",
                written,
            ));
        };

        let copies = copies.max(1) * times.unwrap_or(1).max(1);
        if times.is_some_and(|times| times >= 2) && copies > MAX_COUNT {
            return Err(PatternError::new("invalid repeat count", written));
        }

        group.last = Some(copies);
        group.copies = group.copies.max(copies);
        group.last_size = group.last_size.times(times.unwrap_or(1).max(1) as usize);
        self.out.insert_str(self.out.len() - self.flags, written);

        self.check_size()
    }

    fn atom(&mut self, written: &str) -> Result<(), PatternError> {
        self.out.push_str(written);
        let ranges = class::ranges(written);
        self.ranges += ranges;
        self.push(1, Size::of(ranges))
    }

    fn literal(&mut self, character: char) -> Result<(), PatternError> {
        class::write_literal(&mut self.out, character);
        self.push(1, Size::of(1))
    }

    /// A character given by its code point, which may be a surrogate: nothing in UTF-8 matches
    /// that.
    fn code_point(&mut self, number: u32) -> Result<(), PatternError> {
        match char::from_u32(number) {
            Some(character) => self.literal(character),
            None => self.atom(class::NOTHING),
        }
    }

    fn push(&mut self, copies: u32, size: Size) -> Result<(), PatternError> {
        self.flags = 0;
        let group = self.group();
        group.last = Some(copies);
        group.copies = group.copies.max(copies);
        group.before = group.before.and(group.last_size);
        group.last_size = size;
        group.pieces += 1;
        self.check_size()
    }

    /// Refuses what is too large for Go.
    fn check_size(&mut self) -> Result<(), PatternError> {
        let size = self.group().size();
        if size.steps > MAX_STEPS || self.ranges > MAX_RANGES {
            return Err(PatternError::new(LARGE, self.whole));
        }
        if size.height > MAX_NESTING {
            return Err(PatternError::new(DEEP, self.whole));
        }
        Ok(())
    }

    fn group(&mut self) -> &mut Group {
        self.groups
            .last_mut()
            .expect("the whole expression is a group")
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}

/// `{3}`, `{3,}`, `{3,5}`: minimum, maximum and length. A number that overflows is `None`; `{` may
/// also be no repetition.
fn counted(text: &str) -> Option<(Option<u32>, Option<Option<u32>>, usize)> {
    let (low, rest) = number(&text[1..])?;
    let (high, rest) = match rest.strip_prefix(',') {
        None => (None, rest),
        Some(rest) if rest.starts_with('}') => (Some(None), rest),
        Some(rest) => {
            let (high, rest) = number(rest)?;
            // It overflows, so it exceeds the limit, too.
            (Some(Some(high.unwrap_or(u32::MAX))), rest)
        }
    };

    let rest = rest.strip_prefix('}')?;
    Some((low, high, text.len() - rest.len()))
}

/// A number without leading zeros; `None` in it: it overflows.
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
