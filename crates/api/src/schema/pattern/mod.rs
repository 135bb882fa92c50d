//! Regular expressions in Go's syntax, matched in time linear in the text.
//!
//! Authors write for Go's `regexp`, and its complaints are part of the API. `translate` reads that syntax, complains in
//! those words, and writes the same expression for the `regex` crate, which keeps Go's promise: no expression, however
//! hostile, takes more than linear time. What an expression may cost in memory is bounded.

mod class;
mod translate;

use regex::{Regex, RegexBuilder};

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Box<str>,
    compiled: Regex,
}

/// Why a text is no regular expression. The texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {fault}: `{at}`")]
pub struct PatternError {
    fault: &'static str,
    at: String,
}

impl Pattern {
    /// # Errors
    /// The text breaks Go's syntax, or is too large when compiled.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        let translated = translate::translate(text)?;
        let compiled = RegexBuilder::new(&translated)
            .size_limit(COMPILED_LIMIT)
            .dfa_size_limit(LAZY_LIMIT)
            .nest_limit(NESTING_LIMIT)
            .build();
        match compiled {
            Ok(compiled) => Ok(Pattern { text: text.into(), compiled }),
            Err(_) => Err(PatternError::new(LARGE, text)),
        }
    }

    /// The text it was made of.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

impl PatternError {
    fn new(fault: &'static str, at: &str) -> PatternError {
        PatternError { fault, at: at.to_owned() }
    }
}

const LARGE: &str = "expression too large";
const COMPILED_LIMIT: usize = 8 << 20;
const LAZY_LIMIT: usize = 1 << 20;
const NESTING_LIMIT: u32 = 1000;
