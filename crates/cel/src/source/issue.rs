//! Errors with their places, shown as cel-go shows them.

use std::fmt;
use std::sync::Arc;

use super::{Location, Source};

/// How many errors are kept and shown.
const SHOWN: usize = 100;

/// Bytes of a line that is shown with an error.
const LONGEST_SNIPPET: usize = 16_384;

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    pub location: Location,
    pub message: String,
}

/// Why an expression does not compile: all errors of the first stage that found any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    /// In the order in which they were found, at most 100.
    issues: Vec<Issue>,
    /// How many there were.
    found: usize,
    source: Arc<Source>,
}

impl Issues {
    #[must_use]
    pub fn new(source: &Arc<Source>) -> Self {
        Self {
            issues: Vec::new(),
            found: 0,
            source: Arc::clone(source),
        }
    }

    pub fn report(&mut self, location: Location, message: impl Into<String>) {
        self.found += 1;
        if self.found <= SHOWN {
            self.issues.push(Issue {
                location,
                message: message.into(),
            });
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found == 0
    }

    /// The errors, in the order in which they were found.
    #[must_use]
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// The errors by place, as cel-go orders them.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Issue> {
        let mut sorted: Vec<&Issue> = self.issues.iter().collect();
        sorted.sort_by_key(|issue| issue.location);
        sorted
    }
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.sorted().into_iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            show(f, issue, &self.source)?;
        }
        if self.found > SHOWN {
            write!(f, "\n{} more errors were truncated", self.found - SHOWN)?;
        }
        Ok(())
    }
}

fn show(f: &mut fmt::Formatter<'_>, issue: &Issue, source: &Source) -> fmt::Result {
    let Location { line, column } = issue.location;
    let message = &issue.message;
    write!(f, "ERROR: <input>:{line}:{}: {message}", column + 1)?;

    let Some(snippet) = source
        .line(line)
        .filter(|line| line.len() <= LONGEST_SNIPPET)
    else {
        return Ok(());
    };
    write!(f, "\n | {}\n | ", snippet.replace('\t', " "))?;

    let mut characters = snippet.chars();
    for _ in 0..column {
        match characters.next() {
            None => break,
            Some(character) => f.write_str(wide(character, "．", "."))?,
        }
    }
    f.write_str(
        characters
            .next()
            .map_or("^", |character| wide(character, "＾", "^")),
    )
}

/// Marks under characters of several bytes are wide.
fn wide(character: char, wide: &'static str, narrow: &'static str) -> &'static str {
    if character.len_utf8() > 1 {
        wide
    } else {
        narrow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, issues: &[(u32, &str)], expected: &str) {
        let source = Arc::new(Source::new(text));
        let mut found = Issues::new(&source);
        for (offset, message) in issues {
            found.report(source.location(*offset), *message);
        }
        assert_eq!(found.to_string(), expected);
    }

    #[test]
    fn errors_are_shown_by_place_with_their_line() {
        check(
            "a\n\tbc",
            &[(4, "second"), (0, "first")],
            "ERROR: <input>:1:1: first\n | a\n | ^\nERROR: <input>:2:3: second\n |  bc\n | ..^",
        );
    }

    #[test]
    fn marks_under_wide_characters_are_wide() {
        check(
            "'é'ü",
            &[(3, "x")],
            "ERROR: <input>:1:4: x\n | 'é'ü\n | .．.＾",
        );
    }

    #[test]
    fn an_empty_text_has_no_snippet() {
        check("", &[(0, "x")], "ERROR: <input>:1:1: x");
    }

    #[test]
    fn only_a_hundred_errors_are_shown() {
        let source = Arc::new(Source::new("x"));
        let mut issues = Issues::new(&source);
        for _ in 0..102 {
            issues.report(Location::NONE, "m");
        }
        let text = issues.to_string();
        assert!(text.starts_with("ERROR: <input>:-1:0: m\nERROR"));
        assert!(text.ends_with("m\n2 more errors were truncated"));
        assert_eq!(text.lines().count(), 101);
    }
}
