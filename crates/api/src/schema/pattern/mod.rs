//! Regular expressions in Go's syntax, matched in time linear in the text.
//!
//! Users write them for Go's `regexp`, and its errors are part of the API. `translate` parses that
//! syntax, reports Go's errors, and writes the same expression for the `regex` crate, which has
//! Go's guarantee: no expression takes more than linear time. Expressions that would be large
//! there, because they repeat classes of many characters, use `wide`. An expression is parsed when
//! it is created, and compiled on first use; its cost is bounded by Go's limits, and
//! [`Pattern::weight`] returns it, so that the sum of several can be bounded too.

mod class;
mod translate;
mod wide;

use std::ops::Range;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use translate::Translated;
use wide::Wide;

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Box<str>,
    translated: Translated,
    compiled: OnceLock<Compiled>,
}

#[derive(Clone, Debug)]
enum Compiled {
    Small(Regex),
    Wide(Wide),
    /// Too deep for the parser, though the text is valid.
    Never,
}

/// Why a text is no regular expression. The texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {fault}: `{at}`")]
pub struct PatternError {
    fault: &'static str,
    at: String,
}

impl Pattern {
    /// Parses an expression.
    ///
    /// # Errors
    /// The text violates Go's syntax, or is too large for Go.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        let translated = translate::translate(text)?;
        Ok(Pattern {
            text: text.into(),
            translated,
            compiled: OnceLock::new(),
        })
    }

    /// The source text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its memory use when compiled: about an eighth of the bytes.
    pub fn weight(&self) -> usize {
        EACH + self.translated.steps + self.translated.ranges
    }

    /// Whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        match self.compiled.get_or_init(|| self.compile()) {
            Compiled::Small(regex) => regex.is_match(text),
            Compiled::Wide(wide) => wide.is_match(text),
            Compiled::Never => false,
        }
    }

    /// Where it matches in `text`, from left to right: at most `most` places. `None`: the expression
    /// is too large to say where.
    pub fn find_all(&self, text: &str, most: usize) -> Option<Vec<Range<usize>>> {
        let matches = |regex: &Regex| {
            let found = regex.find_iter(text).take(most);
            found.map(|found| found.range()).collect()
        };
        match self.compiled.get_or_init(|| self.compile()) {
            Compiled::Small(regex) => Some(matches(regex)),
            // Such an expression is only known to match or not: it is compiled once more, with more
            // memory, and not kept.
            Compiled::Wide(_) => self.build(FOUND_LIMIT).as_ref().map(matches),
            Compiled::Never => Some(Vec::new()),
        }
    }

    fn build(&self, size: usize) -> Option<Regex> {
        RegexBuilder::new(&self.translated.text)
            .size_limit(size)
            .dfa_size_limit(LAZY_LIMIT)
            .nest_limit(PARSER_NESTING)
            .build()
            .ok()
    }

    fn compile(&self) -> Compiled {
        let text = &self.translated.text;
        let small = self.translated.copied <= SMALL && self.translated.height <= LOW;
        if small && let Some(regex) = self.build(COMPILED_LIMIT) {
            return Compiled::Small(regex);
        }

        Wide::new(text, PARSER_NESTING, 2 * MAX_STEPS).map_or(Compiled::Never, Compiled::Wide)
    }
}

impl PatternError {
    fn new(fault: &'static str, at: &str) -> PatternError {
        PatternError {
            fault,
            at: at.to_owned(),
        }
    }
}

/// The base weight of every expression.
const EACH: usize = 500;

/// Expressions with up to this many character ranges, copies counted, are small.
const SMALL: usize = 2000;

/// Maximum nesting for the `regex` crate, which recurses.
const LOW: usize = 100;

/// Go's maximum number of steps, copies counted.
const MAX_STEPS: usize = (128 << 20) / 40;

/// Go's maximum number of character ranges, without copies.
const MAX_RANGES: usize = (128 << 20) / 8;

/// Go's maximum nesting of groups.
const MAX_NESTING: usize = 1000;

const LARGE: &str = "expression too large";
const DEEP: &str = "expression nests too deeply";
const COMPILED_LIMIT: usize = 2 << 20;
const FOUND_LIMIT: usize = 32 << 20;
const LAZY_LIMIT: usize = 256 << 10;

/// Maximum nesting of groups and repetitions for the parser.
const PARSER_NESTING: u32 = 5000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares both engines, regardless of which one the expression would use.
    #[test]
    fn both_engines_match_the_same() {
        let patterns = [
            "a",
            "^a",
            "a$",
            "^$",
            "^a*$",
            "a+b",
            "(a|b)*c",
            "a{2}",
            "^a{2,3}$",
            "^(ab){1,}$",
            "(?i)ab",
            "(?m)^b$",
            "(?s)a.b",
            r"\bfoo\b",
            r"\Boo",
            r"[\pL]",
            r"^[^\pL]+$",
            r"\p{Greek}{2}",
            "a|b|cd",
            "(a*)*",
            "(|a)+b",
            "x{0}y",
            "(a?){3}",
            "a{0,2}b{1,2}$",
            r"^\d{3}-\d{4}$",
            "[a-c]{2,}",
            r"\x{1F600}",
            "é",
            "[é-ü]+",
        ];

        let texts = [
            "", "a", "b", "ab", "aab", "abab", "aaa", "aaaa", "c", "foo", "a foo b", "afoo",
            "xx\nb", "a\nb", "αβ", "É", "éü", "123-4567", "😀", "AB", "cd", "y", "abcabc", "-",
        ];

        for pattern in patterns {
            let pattern = pattern.replace("\\\\", "\\");
            let translated = translate::translate(&pattern).unwrap();
            let small = Regex::new(&translated.text).unwrap();

            let wide = Wide::new(&translated.text, PARSER_NESTING, MAX_STEPS).unwrap();
            for text in texts {
                assert_eq!(
                    wide.is_match(text),
                    small.is_match(text),
                    "{pattern:?} on {text:?}"
                );
            }
        }
    }
}
