//! The tokens as cel-go's parser sees them: read when they are needed, hidden ones kept for the
//! texts of errors.

use std::sync::Arc;

use crate::lex::{Kind, Lexer, Token, Unrecognized};
use crate::source::Source;

pub(super) struct Tokens {
    source: Arc<Source>,
    lexer: Lexer,
    /// All that were read.
    all: Vec<Token>,
    /// Those that are not hidden, as indices.
    seen: Vec<usize>,
    /// Which one is the next.
    at: usize,
    /// What was no token, since it was last asked.
    pub(super) unrecognized: Vec<Unrecognized>,
}

impl Tokens {
    pub(super) fn new(source: &Arc<Source>) -> Self {
        Self {
            source: Arc::clone(source),
            lexer: Lexer::new(source),
            all: Vec::new(),
            seen: Vec::new(),
            at: 0,
            unrecognized: Vec::new(),
        }
    }

    /// Which token is the next: it grows as tokens are consumed.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The token so far ahead: 0 is the next one.
    pub(super) fn ahead(&mut self, count: usize) -> Token {
        let wanted = self.at + count;
        while self.seen.len() <= wanted {
            if let Some(last) = self.seen.last().map(|index| self.all[*index])
                && last.kind == Kind::Eof
            {
                return last;
            }
            let token = self.lexer.next(&mut self.unrecognized);
            if !token.kind.is_hidden() {
                self.seen.push(self.all.len());
            }
            self.all.push(token);
        }
        self.all[self.seen[wanted]]
    }

    pub(super) fn before(&self) -> Option<Token> {
        let index = self.seen.get(self.at.checked_sub(1)?)?;
        Some(self.all[*index])
    }

    pub(super) fn consume(&mut self) {
        if self.ahead(0).kind != Kind::Eof {
            self.at += 1;
        }
    }

    /// The text of the tokens from the next one to the one so far ahead, hidden ones too.
    pub(super) fn text_to(&mut self, count: usize) -> String {
        if self.ahead(0).kind == Kind::Eof {
            return "<EOF>".into();
        }
        let last = self.ahead(count);
        let first = self.seen[self.at];
        self.all[first..]
            .iter()
            .take_while(|token| token.offset <= last.offset && token.kind != Kind::Eof)
            .map(|token| &self.source.text()[token.start as usize..token.end as usize])
            .collect()
    }

    pub(super) fn text(&self, token: Token) -> &str {
        match token.kind {
            Kind::Eof => "<EOF>",
            _ => &self.source.text()[token.start as usize..token.end as usize],
        }
    }

    /// Where an error at `token` is; in an empty text, before it.
    pub(super) fn offset(&self, token: Token) -> i32 {
        if self.source.text().is_empty() {
            return -1;
        }
        i32::try_from(token.offset).unwrap_or(i32::MAX)
    }
}
