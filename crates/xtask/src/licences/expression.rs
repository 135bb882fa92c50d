//! SPDX licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`, `Apache-2.0 WITH
//! LLVM-exception`.
//!
//! `WITH` binds closest, then `AND`, then `OR`; brackets override. Old packages write
//! `MIT/Apache-2.0`, where the stroke means `OR`. Operators are written in capitals, as the
//! specification has them, or all small.

use std::fmt;

/// A licence expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expression<'a> {
    Licence {
        name: &'a str,
        exception: Option<&'a str>,
    },
    /// Any of these.
    Any(Vec<Expression<'a>>),
    /// All of these together.
    All(Vec<Expression<'a>>),
}

/// Why a text is not an expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExpressionError {
    /// The text ends where this is expected.
    Ends(&'static str),
    /// Another token where this is expected.
    Unexpected { found: String, due: &'static str },
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpressionError::Ends(due) => write!(f, "it ends where {due} is due"),
            ExpressionError::Unexpected { found, due } => {
                write!(f, "`{found}` stands where {due} is due")
            }
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Expression<'_>, ExpressionError> {
    let mut tokens = Tokens { rest: text };
    let expression = any(&mut tokens)?;
    match tokens.next() {
        None => Ok(expression),
        Some(found) => Err(ExpressionError::Unexpected {
            found: found.to_string(),
            due: "an operator",
        }),
    }
}

fn any<'a>(tokens: &mut Tokens<'a>) -> Result<Expression<'a>, ExpressionError> {
    let mut alternatives = vec![all(tokens)?];
    while tokens.take(&["OR", "or", "/"]) {
        alternatives.push(all(tokens)?);
    }
    Ok(joined(alternatives, Expression::Any))
}

fn all<'a>(tokens: &mut Tokens<'a>) -> Result<Expression<'a>, ExpressionError> {
    let mut parts = vec![single(tokens)?];
    while tokens.take(&["AND", "and"]) {
        parts.push(single(tokens)?);
    }
    Ok(joined(parts, Expression::All))
}

fn single<'a>(tokens: &mut Tokens<'a>) -> Result<Expression<'a>, ExpressionError> {
    if tokens.take(&["("]) {
        let inner = any(tokens)?;
        return match tokens.next() {
            Some(")") => Ok(inner),
            Some(found) => Err(ExpressionError::Unexpected {
                found: found.to_string(),
                due: "`)`",
            }),
            None => Err(ExpressionError::Ends("`)`")),
        };
    }

    let name = name(tokens, "a licence")?;
    let exception = if tokens.take(&["WITH", "with"]) {
        Some(self::name(tokens, "an exception")?)
    } else {
        None
    };

    Ok(Expression::Licence { name, exception })
}

fn name<'a>(tokens: &mut Tokens<'a>, due: &'static str) -> Result<&'a str, ExpressionError> {
    let token = tokens.next().ok_or(ExpressionError::Ends(due))?;
    let is_name = token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-.+:".contains(&byte));
    match token.to_ascii_uppercase().as_str() {
        "OR" | "AND" | "WITH" => Err(ExpressionError::Unexpected {
            found: token.to_string(),
            due,
        }),
        _ if is_name => Ok(token),
        _ => Err(ExpressionError::Unexpected {
            found: token.to_string(),
            due,
        }),
    }
}

fn joined<'a>(
    mut parts: Vec<Expression<'a>>,
    join: fn(Vec<Expression<'a>>) -> Expression<'a>,
) -> Expression<'a> {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

/// Brackets, strokes, and the words between them.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (token, rest) = self.split()?;
        self.rest = rest;
        Some(token)
    }

    /// Consumes the next token if it is one of these; returns whether it was.
    fn take(&mut self, wanted: &[&str]) -> bool {
        let Some((token, rest)) = self.split() else {
            return false;
        };
        let found = wanted.contains(&token);
        if found {
            self.rest = rest;
        }
        found
    }

    fn split(&self) -> Option<(&'a str, &'a str)> {
        const MARKS: [char; 3] = ['(', ')', '/'];
        let rest = self.rest.trim_start();
        let first = rest.chars().next()?;
        let end = match MARKS.contains(&first) {
            true => 1,
            false => rest
                .find(|char: char| char.is_whitespace() || MARKS.contains(&char))
                .unwrap_or(rest.len()),
        };
        Some(rest.split_at(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_binds_closest_then_and_then_or() {
        check("MIT", "MIT");
        check("MIT OR Apache-2.0 OR Zlib", "any(MIT, Apache-2.0, Zlib)");
        check(
            "MIT OR Apache-2.0 AND ISC",
            "any(MIT, all(Apache-2.0, ISC))",
        );

        check(
            "(MIT OR Apache-2.0) AND ISC",
            "all(any(MIT, Apache-2.0), ISC)",
        );

        check(
            "Apache-2.0 WITH LLVM-exception AND MIT",
            "all(Apache-2.0 with LLVM-exception, MIT)",
        );

        check("((MIT))", "MIT");
        check(" MIT  or(Apache-2.0)", "any(MIT, Apache-2.0)");
    }

    #[test]
    fn a_stroke_means_or() {
        check("MIT/Apache-2.0", "any(MIT, Apache-2.0)");
        check("MIT / Apache-2.0", "any(MIT, Apache-2.0)");
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(shown(&parse(text).unwrap()), expected, "{text}");
    }

    fn shown(expression: &Expression<'_>) -> String {
        let list =
            |parts: &[Expression<'_>]| parts.iter().map(shown).collect::<Vec<_>>().join(", ");
        match expression {
            Expression::Licence {
                name,
                exception: None,
            } => name.to_string(),
            Expression::Licence {
                name,
                exception: Some(exception),
            } => format!("{name} with {exception}"),
            Expression::Any(parts) => format!("any({})", list(parts)),
            Expression::All(parts) => format!("all({})", list(parts)),
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_what_was_due() {
        refuse("", "it ends where a licence is due");
        refuse("MIT OR", "it ends where a licence is due");
        refuse("OR MIT", "`OR` stands where a licence is due");
        refuse(
            "MIT Apache-2.0",
            "`Apache-2.0` stands where an operator is due",
        );

        refuse("(MIT", "it ends where `)` is due");
        refuse("(MIT Zlib)", "`Zlib` stands where `)` is due");
        refuse("MIT)", "`)` stands where an operator is due");
        refuse("MIT WITH", "it ends where an exception is due");
        refuse("MIT, Zlib", "`MIT,` stands where a licence is due");
    }

    fn refuse(text: &str, why: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), why, "{text}");
    }
}
