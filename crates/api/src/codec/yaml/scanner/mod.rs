//! Tokenizer: turns indentation into explicit block starts and ends, and detects mapping keys.
//!
//! `a: b` shows that `a` was a key only when the colon comes. Until then the tokens from a
//! *possible simple key* on wait in a queue; a colon inserts the KEY token (and, if the indentation
//! grew, the start of the mapping) before them. A possible key is dropped at the end of its line or
//! after 1024 characters, so the queue stays short, and as every token knows whether it begins such
//! a key, no step searches the open flow levels.

mod markup;
mod scalar;

use std::collections::VecDeque;

use super::Error;
use super::cursor::{Cursor, Mark};
use super::reader::Input;
use super::token::{Kind, Token};
use crate::fuzz::steps;

pub(super) struct Scanner<'a> {
    cursor: Cursor<'a>,
    fault: Option<&'static str>,
    queue: VecDeque<Token<'a>>,
    /// Number of tokens that have left the queue.
    taken: usize,
    /// The column of the innermost open block collection, and of those around it; -1 outside of
    /// all.
    indent: isize,
    indents: Vec<isize>,
    simple_key_allowed: bool,
    /// The possible simple key of every flow level; the first is the block context's.
    keys: Vec<SimpleKey>,
    /// Set after a possible key is recorded, until its first token is queued.
    key_begins: bool,
}

#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    /// At the indentation of the block mapping only a key is allowed.
    required: bool,
    /// The number of its first token.
    token: usize,
    mark: Mark,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(input: &'a Input<'_>) -> Scanner<'a> {
        let mut cursor = Cursor::new(&input.text);

        // The reader has removed the one that marks the encoding; this one is part of the text.
        if input.text.starts_with('\u{FEFF}') {
            cursor.skip();
        }

        Scanner {
            cursor,
            fault: input.fault,
            queue: VecDeque::new(),
            taken: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: true,
            keys: vec![SimpleKey::default()],
            key_begins: false,
        }
    }

    /// The next token, without consuming it.
    pub(super) fn peek(&mut self) -> Result<&Token<'a>, Error> {
        while self.needs_more_tokens()? {
            self.fetch()?;
        }
        Ok(self.queue.front().expect("fetched until there is one"))
    }

    /// Consumes the token that was peeked.
    pub(super) fn take(&mut self) -> Token<'a> {
        self.taken += 1;
        self.queue
            .pop_front()
            .expect("only what was peeked at is taken")
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, Error> {
        self.peek()?;
        Ok(self.take())
    }

    fn needs_more_tokens(&mut self) -> Result<bool, Error> {
        let Some(head) = self.queue.front() else {
            return Ok(true);
        };
        match head.key_level {
            Some(level)
                if self
                    .keys
                    .get(level)
                    .is_some_and(|key| key.token == self.taken) =>
            {
                self.key_is_valid(level)
            }
            _ => Ok(false),
        }
    }

    fn fetch(&mut self) -> Result<(), Error> {
        let from = self.cursor.offset();
        let fetched = self.fetch_checked();
        steps::count(1 + self.cursor.offset() - from);
        fetched
    }

    fn fetch_checked(&mut self) -> Result<(), Error> {
        self.skip_to_next_token();
        self.unroll_indent(self.column());

        if let Some(fault) = self.fault
            && self.cursor.fewer_than(4)
        {
            return Err(Error::syntax(fault, 0, 0));
        }

        self.fetch_token()?;

        match self.fault {
            Some(fault) if self.cursor.at_end() => Err(Error::syntax(fault, 0, 0)),
            _ => Ok(()),
        }
    }

    fn fetch_token(&mut self) -> Result<(), Error> {
        let flow = self.in_flow();
        match self.cursor.here() {
            0 => self.fetch_stream_end(),
            b'%' if self.cursor.column() == 0 => self.fetch_directive(),
            b'-' if self.cursor.document_indicator(b'-') => {
                self.fetch_document_indicator(Kind::DocumentStart)
            }
            b'.' if self.cursor.document_indicator(b'.') => {
                self.fetch_document_indicator(Kind::DocumentEnd)
            }
            b'[' => self.fetch_flow_start(Kind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(Kind::FlowMappingStart),
            b']' => self.fetch_flow_end(Kind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(Kind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if self.cursor.blank_or_end(1) => self.fetch_block_entry(),
            b'?' if flow || self.cursor.blank_or_end(1) => self.fetch_key(),
            b':' if flow || self.cursor.blank_or_end(1) => self.fetch_value(),
            b'*' | b'&' => self.fetch_anchor(),
            b'!' => self.fetch_tag(),
            b'|' if !flow => self.fetch_block_scalar(true),
            b'>' if !flow => self.fetch_block_scalar(false),
            b'\'' => self.fetch_quoted(true),
            b'"' => self.fetch_quoted(false),
            b'|' | b'>' | b'#' | b'%' | b'@' | b'`' | b'\t' => Err(self.error(
                "found character that cannot start any token",
                self.cursor.mark(),
            )),
            _ => self.fetch_plain(),
        }
    }

    fn skip_to_next_token(&mut self) {
        loop {
            // A tab may separate tokens, but where a key can begin it would be indentation.
            let tabs = self.in_flow() || !self.simple_key_allowed;
            while self.cursor.here() == b' ' || (tabs && self.cursor.here() == b'\t') {
                self.cursor.skip();
            }

            self.cursor.skip_comment();

            if self.cursor.skip_line_break().is_none() {
                return;
            }
            if !self.in_flow() {
                self.simple_key_allowed = true;
            }
        }
    }

    fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    fn column(&self) -> isize {
        self.cursor.column().cast_signed()
    }

    /// An error at the cursor, while scanning something that began at `began`.
    fn error(&self, problem: &'static str, began: Mark) -> Error {
        match self.fault {
            Some(fault) if self.cursor.at_end() => Error::syntax(fault, 0, 0),
            // Lines of scanner errors count from one, but the first line is not mentioned.
            _ if self.cursor.line() != 0 => Error::syntax(problem, self.cursor.line() + 1, 0),
            _ => Error::syntax(problem, 0, began.line),
        }
    }

    /// The number of the token that is queued next.
    fn next_token(&self) -> usize {
        self.taken + self.queue.len()
    }

    fn push(&mut self, kind: Kind<'a>, mark: Mark) {
        // A key on the level around a `[` is recorded before the level grows.
        let level = self.keys.len() - 1 - usize::from(self.key_begins && starts_flow(&kind));
        let key_level = std::mem::take(&mut self.key_begins).then_some(level);
        self.queue.push_back(Token {
            kind,
            line: mark.line,
            key_level,
        });
    }

    /// Inserts a token before the one with the number `before`, or, if that has left the queue, at
    /// its end.
    fn insert(&mut self, kind: Kind<'a>, mark: Mark, before: Option<usize>) {
        let place = before
            .and_then(|number| number.checked_sub(self.taken))
            .unwrap_or(self.queue.len());
        steps::count(self.queue.len() - place);
        self.queue.insert(
            place,
            Token {
                kind,
                line: mark.line,
                key_level: None,
            },
        );
    }
}

fn starts_flow(kind: &Kind<'_>) -> bool {
    matches!(kind, Kind::FlowSequenceStart | Kind::FlowMappingStart)
}

/// Simple keys and indentation.
impl<'a> Scanner<'a> {
    fn key_is_valid(&mut self, level: usize) -> Result<bool, Error> {
        let key = self.keys[level];
        if !key.possible {
            return Ok(false);
        }

        let here = self.cursor.mark();
        if key.mark.line == here.line && key.mark.index + KEY_REACH >= here.index {
            return Ok(true);
        }
        if key.required {
            return Err(self.error("could not find expected ':'", key.mark));
        }

        self.keys[level].possible = false;

        Ok(false)
    }

    fn note_simple_key(&mut self) -> Result<(), Error> {
        if !self.simple_key_allowed {
            return Ok(());
        }

        self.drop_simple_key()?;

        let key = SimpleKey {
            possible: true,
            required: !self.in_flow() && self.indent == self.column(),
            token: self.next_token(),
            mark: self.cursor.mark(),
        };
        *self.level() = key;

        self.key_begins = true;

        Ok(())
    }

    fn drop_simple_key(&mut self) -> Result<(), Error> {
        let key = *self.level();
        if key.possible && key.required {
            return Err(self.error("could not find expected ':'", key.mark));
        }
        self.level().possible = false;
        Ok(())
    }

    fn level(&mut self) -> &mut SimpleKey {
        self.keys
            .last_mut()
            .expect("the block level is never closed")
    }

    /// Opens a block collection if the column is deeper than the innermost open one.
    fn roll_indent(
        &mut self,
        mark: Mark,
        before: Option<usize>,
        kind: Kind<'a>,
    ) -> Result<(), Error> {
        let column = mark.column.cast_signed();
        if self.in_flow() || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_DEPTH {
            return Err(self.error(TOO_DEEP, self.keys[0].mark));
        }
        self.insert(kind, mark, before);
        Ok(())
    }

    /// Closes the block collections that are deeper than `column`.
    fn unroll_indent(&mut self, column: isize) {
        while !self.in_flow() && self.indent > column {
            self.push(Kind::BlockEnd, self.cursor.mark());
            self.indent = self
                .indents
                .pop()
                .expect("every level but the outermost was pushed");
        }
    }
}

/// One function for every indicator.
impl<'a> Scanner<'a> {
    fn fetch_stream_end(&mut self) -> Result<(), Error> {
        self.cursor.end_line();
        self.leave_all_blocks()?;
        self.push(Kind::StreamEnd, self.cursor.mark());
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), Error> {
        self.leave_all_blocks()?;
        let mark = self.cursor.mark();
        let kind = self.scan_directive()?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.leave_all_blocks()?;
        self.indicator(kind, 3);
        Ok(())
    }

    fn leave_all_blocks(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.drop_simple_key()?;
        self.simple_key_allowed = false;
        Ok(())
    }

    fn indicator(&mut self, kind: Kind<'a>, width: usize) {
        let mark = self.cursor.mark();
        self.cursor.skip_many(width);
        self.push(kind, mark);
    }

    fn fetch_flow_start(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.note_simple_key()?;
        self.keys.push(SimpleKey {
            token: self.next_token(),
            ..SimpleKey::default()
        });
        if self.keys.len() - 1 > MAX_DEPTH {
            return Err(self.error(TOO_DEEP, self.cursor.mark()));
        }
        self.simple_key_allowed = true;
        self.indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: Kind<'a>) -> Result<(), Error> {
        self.drop_simple_key()?;

        if self.in_flow() {
            let key = self.keys.pop().expect("the flow level's");
            // A level without a key: this is its opening bracket. Upstream no longer waits for a
            // colon after an empty collection, and reads `{}: x` as `{}`.
            let place = key.token.checked_sub(self.taken);
            if let Some(token) = place.and_then(|place| self.queue.get_mut(place)) {
                token.key_level = None;
            }
        }

        self.simple_key_allowed = false;
        self.indicator(kind, 1);

        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Result<(), Error> {
        self.drop_simple_key()?;
        self.simple_key_allowed = true;
        self.indicator(Kind::FlowEntry, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), Error> {
        // In the flow context the parser reports the error, with a better message.
        if !self.in_flow() {
            if !self.simple_key_allowed {
                let problem = "block sequence entries are not allowed in this context";
                return Err(self.error(problem, self.cursor.mark()));
            }
            self.roll_indent(self.cursor.mark(), None, Kind::BlockSequenceStart)?;
        }

        self.drop_simple_key()?;
        self.simple_key_allowed = true;
        self.indicator(Kind::BlockEntry, 1);

        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Error> {
        if !self.in_flow() {
            if !self.simple_key_allowed {
                let problem = "mapping keys are not allowed in this context";
                return Err(self.error(problem, self.cursor.mark()));
            }
            self.roll_indent(self.cursor.mark(), None, Kind::BlockMappingStart)?;
        }
        self.drop_simple_key()?;
        self.simple_key_allowed = !self.in_flow();
        self.indicator(Kind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), Error> {
        let key = *self.level();
        if self.key_is_valid(self.keys.len() - 1)? {
            self.insert(Kind::Key, key.mark, Some(key.token));
            self.roll_indent(key.mark, Some(key.token), Kind::BlockMappingStart)?;
            self.level().possible = false;
            self.simple_key_allowed = false;
        } else {
            if !self.in_flow() {
                if !self.simple_key_allowed {
                    let problem = "mapping values are not allowed in this context";
                    return Err(self.error(problem, self.cursor.mark()));
                }
                self.roll_indent(self.cursor.mark(), None, Kind::BlockMappingStart)?;
            }
            self.simple_key_allowed = !self.in_flow();
        }

        self.indicator(Kind::Value, 1);

        Ok(())
    }
}

/// Maximum distance from the beginning of a simple key to its colon, in characters.
const KEY_REACH: usize = 1024;
/// Maximum nesting of collections, separately in the block and in the flow context.
const MAX_DEPTH: usize = 10_000;
const TOO_DEEP: &str = "exceeded max depth of 10000";
