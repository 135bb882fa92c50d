//! Literals: numbers, and strings with their escape sequences.

use super::{Abort, Builder, Built};
use crate::ast::Literal;
use crate::lex::Kind;
use crate::parse::tree::Tree;
use crate::parse::unescape::unescape;

impl Builder<'_> {
    pub(super) fn read_literal(&mut self, tree: &Tree) -> Built {
        let Tree::Literal {
            start,
            negative,
            token,
        } = tree
        else {
            return Err(Abort);
        };
        let text = token.text(self.source.text());
        let literal = match token.kind {
            Kind::Int => int(text, *negative).ok_or("invalid int literal"),
            Kind::Uint => uint(text).ok_or("invalid uint literal"),
            Kind::Float => double(text, *negative).ok_or("invalid double literal"),
            Kind::True => Ok(Literal::Bool(true)),
            Kind::False => Ok(Literal::Bool(false)),
            Kind::String => return self.text_literal(*start, text, false),
            Kind::Bytes => return self.text_literal(*start, &text[1..], true),
            _ => Ok(Literal::Null),
        };
        match literal {
            Ok(literal) => self.literal(*start, literal),
            Err(message) => self.report(*start, message),
        }
    }

    /// After an error the literal is the text as it is written.
    fn text_literal(&mut self, start: i32, text: &str, bytes: bool) -> Built {
        let value = match unescape(text, bytes) {
            Ok(value) => value,
            Err(message) => {
                self.report(start, message)?;
                text.as_bytes().to_vec()
            }
        };
        let literal = match String::from_utf8(value) {
            Ok(text) if !bytes => Literal::String(text.into()),
            Ok(text) => Literal::Bytes(text.into_bytes().into()),
            Err(error) => Literal::Bytes(error.into_bytes().into()),
        };
        self.literal(start, literal)
    }
}

fn int(text: &str, negative: bool) -> Option<Literal> {
    let sign = if negative { "-" } else { "" };
    let value = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16),
        None => format!("{sign}{text}").parse(),
    };
    value.ok().map(Literal::Int)
}

fn uint(text: &str) -> Option<Literal> {
    let text = &text[..text.len() - 1];
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    value.ok().map(Literal::Uint)
}

fn double(text: &str, negative: bool) -> Option<Literal> {
    let value: f64 = text.parse().ok()?;
    let value = if negative { -value } else { value };
    value.is_finite().then_some(Literal::Double(value))
}
