//! Field selectors: `metadata.name=a,status.phase!=Running`.
//!
//! Terms are separated by commas, each split at its first operator; values may contain `\\`, `\,`
//! and `\=`. Which fields a kind has is not known here: [`FieldSelector::transform`] passes every
//! term to the caller.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::Lookup;
use crate::fuzz::steps;
use crate::go_text::Quoted;
use crate::value::Text;

/// A selector over fields: all terms must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldTerm {
    pub field: Text,
    pub value: Text,
    /// `!=` instead of `=`.
    pub negated: bool,
}

/// Why a text is no field selector, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator { selector: String, term: String },
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

/// Why a kind does not support a field, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldLabelError {
    /// The kind has selectable fields of its own, and this is none.
    #[error("field label not supported: {0}")]
    NotSupported(String),
    /// The kind has only the fields that every kind has.
    #[error("{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", Quoted(.0))]
    NotKnown(String),
}

impl FieldSelector {
    pub const fn everything() -> FieldSelector {
        FieldSelector { terms: Vec::new() }
    }

    pub fn new(terms: Vec<FieldTerm>) -> FieldSelector {
        FieldSelector { terms }
    }

    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// An absent field counts as empty.
    pub fn matches(&self, fields: &(impl Lookup + ?Sized)) -> bool {
        self.terms.iter().all(|term| term.matches(fields))
    }

    /// The exact value that a term requires of a field.
    pub fn exact_value(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| !term.negated && term.field == field)
            .map(|term| term.value.as_str())
    }

    /// Transforms every term with a function that knows the kind's fields: it renames, refuses, or
    /// returns two empty texts to drop the term.
    pub fn transform<E>(
        &self,
        mut known: impl FnMut(&str, &str) -> Result<(Text, Text), E>,
    ) -> Result<FieldSelector, E> {
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let (field, value) = known(&term.field, &term.value)?;
            if !field.is_empty() || !value.is_empty() {
                terms.push(FieldTerm {
                    field,
                    value,
                    negated: term.negated,
                });
            }
        }

        Ok(FieldSelector { terms })
    }
}

/// The fields of kinds without selectable fields of their own: for [`FieldSelector::transform`].
pub fn metadata_field(field: &str, value: &str) -> Result<(Text, Text), FieldLabelError> {
    match field {
        "metadata.name" | "metadata.namespace" => Ok((Text::new(field), Text::new(value))),
        _ => Err(FieldLabelError::NotKnown(field.to_owned())),
    }
}

impl FieldTerm {
    pub fn matches(&self, fields: &(impl Lookup + ?Sized)) -> bool {
        let equal = fields.lookup(&self.field).unwrap_or_default() == self.value;
        equal != self.negated
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<FieldSelector, FieldSelectorError> {
        let mut parts = split_terms(text);
        // Upstream processes the terms in this order, and reports the first invalid one.
        steps::count(parts.len() * parts.len().checked_ilog2().unwrap_or(0) as usize);
        parts.sort_unstable();
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let mut terms = parts
            .map(|part| read_term(text, part))
            .collect::<Result<Vec<_>, _>>()?;
        terms.retain(|term| !term.field.is_empty() || !term.value.is_empty());
        Ok(FieldSelector { terms })
    }
}

/// The parts between unescaped commas.
fn split_terms(text: &str) -> Vec<&str> {
    steps::count(text.len());
    let mut protected = false;
    let at_commas = move |character: char| {
        let splits = !protected && character == ',';
        protected = !protected && character == '\\';
        splits
    };
    text.split(at_commas).collect()
}

fn read_term(selector: &str, term: &str) -> Result<FieldTerm, FieldSelectorError> {
    steps::count(term.len());
    let offset = term
        .char_indices()
        .find(|(index, _)| operator(&term[*index..]).is_some());
    let Some((offset, _)) = offset else {
        return Err(FieldSelectorError::NoOperator {
            selector: selector.to_owned(),
            term: term.to_owned(),
        });
    };

    let (field, rest) = term.split_at(offset);
    let operator = operator(rest).expect("found at this offset just above");
    let value = unescaped(&rest[operator.len()..])?;

    Ok(FieldTerm {
        field: Text::new(field),
        value: Text::new(value),
        negated: operator == "!=",
    })
}

fn operator(text: &str) -> Option<&'static str> {
    ["!=", "==", "="]
        .into_iter()
        .find(|operator| text.starts_with(operator))
}

fn unescaped(value: &str) -> Result<Cow<'_, str>, FieldSelectorError> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }

    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    return Err(FieldSelectorError::Escape(
                        std::iter::once('\\').chain(other).collect(),
                    ));
                }
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(character)),
            _ => plain.push(character),
        }
    }

    Ok(Cow::Owned(plain))
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                out.write_str(",")?;
            }
            write!(out, "{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}{}",
            self.field,
            if self.negated { "!=" } else { "=" }
        )?;

        for character in self.value.chars() {
            if matches!(character, '\\' | ',' | '=') {
                out.write_str("\\")?;
            }
            write!(out, "{character}")?;
        }

        Ok(())
    }
}
