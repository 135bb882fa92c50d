//! From a text to the tree of an expression.
//!
//! A text that is right takes one pass ([`fast`]); one that is not is read again by
//! [`crate::syntax_errors`], which recovers from errors as cel-go's parser does. Either way the
//! syntax ([`tree`]) is then built into the expression's tree ([`build`]).

pub(crate) mod build;
pub(crate) mod depth;
mod fast;
pub(crate) mod tree;
mod unescape;

use std::sync::Arc;

use crate::ast::Ast;
use crate::declare::Macro;
use crate::large_stack;
use crate::lex::{Kind, Lexer, Token};
use crate::source::{Issues, Location, Source};
use crate::syntax_errors;
use fast::Refusal;
use tree::Forest;

/// How many characters an expression may have.
const LONGEST: usize = 100_000;

/// Parses `source` and expands `macros`, of which later ones replace earlier ones.
///
/// The caller provides the room that [`may_be_deep`] asks for.
///
/// # Errors
/// Everything that is wrong with the text, as cel-go reports it.
pub(crate) fn parse(source: &Arc<Source>, macros: &[Macro]) -> Result<Ast, Issues> {
    let mut issues = Issues::new(source);
    let size = source.characters();
    if size > LONGEST {
        let message =
            format!("expression code point size exceeds limit: size: {size}, limit {LONGEST}");
        issues.report(Location::NONE, message);
        return Err(issues);
    }

    let mut forest = Forest::default();
    let ast = match tokens(source).and_then(|tokens| fast::parse(&tokens, &mut forest)) {
        Ok(root) => Some(build::build(
            &forest,
            Some(root),
            source,
            macros,
            &mut issues,
        )),
        Err(Refusal) => {
            let mut forest = Forest::default();
            syntax_errors::parse(source, &mut forest, &mut issues)
                .map(|root| build::build(&forest, root, source, macros, &mut issues))
        }
    };

    match ast {
        Some(ast) if issues.is_empty() => Ok(ast),
        _ => Err(issues),
    }
}

/// Whether there are so many operators, fields and brackets that the tree may be deep.
pub(crate) fn may_be_deep(source: &Source) -> bool {
    let nests = |byte: &&u8| {
        matches!(
            byte,
            b'(' | b'['
                | b'{'
                | b'.'
                | b'?'
                | b'+'
                | b'-'
                | b'*'
                | b'/'
                | b'%'
                | b'<'
                | b'>'
                | b'='
                | b'!'
                | b'i'
        )
    };
    source
        .text()
        .as_bytes()
        .iter()
        .filter(nests)
        .nth(large_stack::HIGH)
        .is_some()
}

/// What the fast parser reads, unless there is something that is no token.
fn tokens(source: &Arc<Source>) -> Result<Vec<Token>, Refusal> {
    let mut lexer = Lexer::new(source);
    let (mut tokens, mut unrecognized) = (Vec::new(), Vec::new());
    loop {
        let token = lexer.next(&mut unrecognized);
        if !unrecognized.is_empty() {
            return Err(Refusal);
        }
        if !token.kind.is_hidden() {
            tokens.push(token);
        }
        if token.kind == Kind::Eof {
            return Ok(tokens);
        }
    }
}

/// Whether the fast parser accepts a text.
#[cfg(test)]
pub(crate) fn accepts(source: &Arc<Source>) -> bool {
    tokens(source).is_ok_and(|tokens| fast::parse(&tokens, &mut Forest::default()).is_ok())
}
