//! One condition on one label.

use std::fmt;

use super::Lookup;
use crate::field_error::{FieldError, FieldErrors};
use crate::fuzz::steps;
use crate::go_text::parse_int;
use crate::names;
use crate::value::{Path, Text};

/// A condition on the label `key`. [`Requirement::new`] validates it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Text,
    operator: Operator,
    /// Sorted, for printing and binary search.
    values: Vec<Text>,
}

/// How a label and a requirement's values are compared. `Equals`, `DoubleEquals` and a single `In`
/// mean the same, but print as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl Requirement {
    /// A validated requirement; `path` is the path of its key and values, for error messages.
    pub fn new(
        key: Text,
        operator: Operator,
        values: Vec<Text>,
        path: &Path<'_>,
    ) -> Result<Requirement, FieldErrors> {
        let mut errors: FieldErrors = check_key(&key, &path.field("key"))
            .err()
            .into_iter()
            .collect();

        let values_path = path.field("values");
        errors.extend(check_count(operator, &values, &values_path));

        // Every error of a value contains the key: with an oversized key, they would fill the
        // memory.
        if key.len() <= LONGEST_KEY {
            errors.extend(check_values(&key, operator, &values, &values_path));
        }

        if errors.is_empty() {
            Ok(Requirement::trusted(key, operator, values))
        } else {
            Err(errors)
        }
    }

    /// A requirement whose key and values were validated before: those of a stored object.
    pub(super) fn trusted(key: Text, operator: Operator, mut values: Vec<Text>) -> Requirement {
        steps::count(values.len() * values.len().checked_ilog2().unwrap_or(0) as usize);
        values.sort_unstable();
        Requirement {
            key,
            operator,
            values,
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, in order.
    pub fn values(&self) -> &[Text] {
        &self.values
    }

    pub fn matches(&self, labels: &(impl Lookup + ?Sized)) -> bool {
        let found = labels.lookup(&self.key);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                found.is_some_and(|value| self.has(value))
            }
            Operator::NotIn | Operator::NotEquals => found.is_none_or(|value| !self.has(value)),
            Operator::Exists => found.is_some(),
            Operator::DoesNotExist => found.is_none(),
            Operator::GreaterThan => self
                .compare(found)
                .is_some_and(|(found, bound)| found > bound),
            Operator::LessThan => self
                .compare(found)
                .is_some_and(|(found, bound)| found < bound),
        }
    }

    /// The exact value that the label must have, if there is only one.
    pub fn exact_value(&self) -> Option<&str> {
        match (self.operator, self.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }

    fn has(&self, value: &str) -> bool {
        self.values
            .binary_search_by(|own| own.as_str().cmp(value))
            .is_ok()
    }

    /// The label and the bound as numbers. A label that is no number is never greater or less.
    fn compare(&self, found: Option<&str>) -> Option<(i64, i64)> {
        Some((
            parse_int(found?).ok()?,
            parse_int(self.values.first()?).ok()?,
        ))
    }
}

/// Validates a label key.
pub(super) fn check_key(key: &str, path: &Path<'_>) -> Result<(), FieldError> {
    steps::count(key.len());
    match names::qualified_name(key).as_slice() {
        [] => Ok(()),
        messages => Err(FieldError::invalid_str(path, key, messages.join("; "))),
    }
}

fn check_count(operator: Operator, values: &[Text], path: &Path<'_>) -> Option<FieldError> {
    let (fits, message) = match operator {
        Operator::In | Operator::NotIn => (
            !values.is_empty(),
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => (
            values.len() == 1,
            "exact-match compatibility requires one single value",
        ),
        Operator::Exists | Operator::DoesNotExist => (
            values.is_empty(),
            "values set must be empty for exists and does not exist",
        ),
        Operator::GreaterThan | Operator::LessThan => (
            values.len() == 1,
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
    };

    (!fits).then(|| FieldError::invalid(path, shown(values), message))
}

fn check_values(key: &str, operator: Operator, values: &[Text], path: &Path<'_>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let compares = matches!(operator, Operator::GreaterThan | Operator::LessThan);
    for (index, value) in values.iter().enumerate().filter(|_| compares) {
        if parse_int(value).is_err() {
            let message = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid_str(&path.index(index), value, message));
        }
    }

    for (index, value) in values.iter().enumerate() {
        steps::count(value.len() + 1);
        let messages = names::label_value(value);
        if !messages.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.index(index).key(key),
                value,
                messages.join("; "),
            ));
        }
    }

    errors
}

/// Values as JSON; upstream's empty list is null.
pub(crate) fn shown<V: AsRef<str>>(values: &[V]) -> String {
    if values.is_empty() {
        return "null".to_owned();
    }
    let quoted: Vec<String> = values
        .iter()
        .map(|value| crate::go_text::Quoted(value.as_ref()).to_string())
        .collect();
    format!("[{}]", quoted.join(","))
}

impl fmt::Display for Requirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match self.operator {
            Operator::Exists => write!(out, "{key}"),
            Operator::DoesNotExist => write!(out, "!{key}"),
            Operator::In => write!(out, "{key} in ({})", Listed(&self.values)),
            Operator::NotIn => write!(out, "{key} notin ({})", Listed(&self.values)),
            Operator::Equals => write!(out, "{key}={}", Listed(&self.values)),
            Operator::DoubleEquals => write!(out, "{key}=={}", Listed(&self.values)),
            Operator::NotEquals => write!(out, "{key}!={}", Listed(&self.values)),
            Operator::GreaterThan => write!(out, "{key}>{}", Listed(&self.values)),
            Operator::LessThan => write!(out, "{key}<{}", Listed(&self.values)),
        }
    }
}

struct Listed<'a>(&'a [Text]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str(",")?;
            }
            out.write_str(value)?;
        }
        Ok(())
    }
}

/// A prefix of 253 bytes, a slash, and a name of 63.
const LONGEST_KEY: usize = 317;
