//! Parses label selectors: `x in (foo,,baz),y,z notin (),!w,n>5`.
//!
//! `Tokens` splits the text into words and symbols, `parse` builds requirements with one token of
//! lookahead. Words end at symbols and white space; `in` and `notin` are operators only where one
//! is expected.

use super::requirement::{Operator, Requirement, check_key};
use crate::field_error::{FieldError, FieldErrors};
use crate::fuzz::steps;
use crate::go_text::Quoted;
use crate::value::{Path, Text};

/// Why a text or a `LabelSelector` is no selector, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelSelectorError {
    #[error("unable to parse requirement: {0}")]
    Requirement(RequirementError),
    #[error("found '{0}', expected: ',' or 'end of string'")]
    ExpectedEnd(String),
    #[error("found '{0}', expected: identifier after ','")]
    ExpectedIdentifierAfterComma(String),
    #[error("found '{0}', expected: !, identifier, or 'end of string'")]
    ExpectedRequirement(String),
    #[error("{} is not a valid label selector operator", Quoted(.0))]
    Operator(String),
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
}

/// Why one requirement is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error("found '{0}', expected: identifier")]
    ExpectedIdentifier(String),
    #[error("found '{0}', expected: in, notin, =, ==, !=, gt, lt")]
    ExpectedOperator(String),
    #[error("found '{0}' expected: '('")]
    ExpectedOpening(String),
    #[error("found '{0}', expected: ',', ')' or identifier")]
    ExpectedValues(String),
    #[error("found '{0}', expected: ',' or ')'")]
    ExpectedComma(String),
    #[error("found '{0}', expected: ',', or identifier")]
    ExpectedValue(String),
    #[error(transparent)]
    Key(#[from] FieldError),
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
}

/// The requirements, in the order of the text.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, LabelSelectorError> {
    let mut tokens = Tokens::new(text);
    let mut requirements = Vec::new();
    while tokens.next != Token::End {
        if !tokens.next.starts_requirement() {
            return Err(LabelSelectorError::ExpectedRequirement(tokens.next.text()));
        }

        requirements.push(requirement(&mut tokens).map_err(LabelSelectorError::Requirement)?);

        match tokens.take() {
            Token::End => break,
            Token::Symbol(",") if tokens.next.starts_requirement() => {}
            Token::Symbol(",") => {
                return Err(LabelSelectorError::ExpectedIdentifierAfterComma(
                    tokens.next.text(),
                ));
            }
            other => return Err(LabelSelectorError::ExpectedEnd(other.text())),
        }
    }

    Ok(requirements)
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, RequirementError> {
    let negated = tokens.next == Token::Symbol("!");
    if negated {
        tokens.take();
    }

    let key = match tokens.take() {
        Token::Word(key) => key,
        other => return Err(RequirementError::ExpectedIdentifier(other.text())),
    };
    check_key(key, &Path::Root)?;

    let ends = matches!(tokens.next, Token::End | Token::Symbol(","));
    let (operator, values) = if negated {
        (Operator::DoesNotExist, Vec::new())
    } else if ends {
        (Operator::Exists, Vec::new())
    } else {
        match operator(tokens)? {
            operator @ (Operator::In | Operator::NotIn) => (operator, values(tokens)?),
            operator => (operator, vec![exact_value(tokens)?]),
        }
    };

    Ok(Requirement::new(
        Text::new(key),
        operator,
        values,
        &Path::Root,
    )?)
}

fn operator(tokens: &mut Tokens<'_>) -> Result<Operator, RequirementError> {
    match tokens.take() {
        Token::Word("in") => Ok(Operator::In),
        Token::Word("notin") => Ok(Operator::NotIn),
        Token::Symbol("=") => Ok(Operator::Equals),
        Token::Symbol("==") => Ok(Operator::DoubleEquals),
        Token::Symbol("!=") => Ok(Operator::NotEquals),
        Token::Symbol(">") => Ok(Operator::GreaterThan),
        Token::Symbol("<") => Ok(Operator::LessThan),
        other => Err(RequirementError::ExpectedOperator(other.text())),
    }
}

/// A list in parentheses, each value once. A missing value between two commas is the empty value.
fn values(tokens: &mut Tokens<'_>) -> Result<Vec<Text>, RequirementError> {
    match tokens.take() {
        Token::Symbol("(") => {}
        other => return Err(RequirementError::ExpectedOpening(other.text())),
    }

    let mut values = Vec::new();
    match tokens.next {
        Token::Symbol(")") => values.push(Text::default()),
        Token::Word(_) | Token::Symbol(",") => listed_values(tokens, &mut values)?,
        other => return Err(RequirementError::ExpectedValues(other.text())),
    }

    tokens.take(); // the closing parenthesis
    steps::count(values.len() * values.len().checked_ilog2().unwrap_or(0) as usize);
    values.sort_unstable();
    values.dedup();

    Ok(values)
}

/// Parses up to, and excluding, the closing parenthesis.
fn listed_values(tokens: &mut Tokens<'_>, values: &mut Vec<Text>) -> Result<(), RequirementError> {
    loop {
        match tokens.take() {
            Token::Word(value) => {
                values.push(Text::new(value));
                match tokens.next {
                    Token::Symbol(",") => {}
                    Token::Symbol(")") => return Ok(()),
                    other => return Err(RequirementError::ExpectedComma(other.text())),
                }
            }
            Token::Symbol(",") => {
                let closes = tokens.next == Token::Symbol(")");
                if values.is_empty() || closes || tokens.next == Token::Symbol(",") {
                    values.push(Text::default());
                }
                if closes {
                    return Ok(());
                }
            }
            other => return Err(RequirementError::ExpectedValue(other.text())),
        }
    }
}

/// The value after `=`; may be empty.
fn exact_value(tokens: &mut Tokens<'_>) -> Result<Text, RequirementError> {
    if matches!(tokens.next, Token::End | Token::Symbol(",")) {
        return Ok(Text::default());
    }
    match tokens.take() {
        Token::Word(value) => Ok(Text::new(value)),
        other => Err(RequirementError::ExpectedIdentifier(other.text())),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl Token<'_> {
    fn starts_requirement(self) -> bool {
        matches!(self, Token::Word(_) | Token::Symbol("!"))
    }

    /// The text in messages.
    fn text(self) -> String {
        match self {
            Token::Word(text) | Token::Symbol(text) => text.to_owned(),
            Token::End => String::new(),
        }
    }
}

/// The tokens of a text, with one token of lookahead.
struct Tokens<'a> {
    next: Token<'a>,
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Tokens<'a> {
        let mut tokens = Tokens {
            next: Token::End,
            rest: text,
        };
        tokens.take();
        tokens
    }

    fn take(&mut self) -> Token<'a> {
        let read = self.read();
        std::mem::replace(&mut self.next, read)
    }

    fn read(&mut self) -> Token<'a> {
        let text = self.rest.trim_start_matches(is_white);
        steps::count(self.rest.len() - text.len() + 1);

        let length = match text.as_bytes() {
            // In upstream a NUL ends the text, too.
            [] | [0, ..] => {
                self.rest = "";
                return Token::End;
            }
            [b'=' | b'!', b'=', ..] => 2,
            [first, ..] if is_symbol(char::from(*first)) => 1,
            _ => text.find(ends_word).unwrap_or(text.len()),
        };
        steps::count(length);

        let (token, rest) = text.split_at(length);

        // Inside the text, it only ends the token before it.
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);

        if token.starts_with(is_symbol) {
            Token::Symbol(token)
        } else {
            Token::Word(token)
        }
    }
}

fn is_white(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn ends_word(character: char) -> bool {
    is_symbol(character) || is_white(character) || character == '\0'
}
