//! A validation error of one field: `spec.replicas: Invalid value: -1: must be greater than or
//! equal to 0`.
//!
//! Validation reports the field, the value and what is allowed; the server puts the parts into
//! `Status.details.causes` and the whole into the message. The texts are upstream's.

use std::fmt;

use crate::codec::json;
use crate::go_text::{Float, Quoted};
use crate::value::{Path, Value};

/// One validation error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    /// The path: `spec.containers[0].image`, or `<nil>` if there is none.
    pub field: String,
    /// The value as the message prints it: strings quoted, the rest as JSON. `None`: omitted.
    pub bad_value: Option<String>,
    /// What is allowed; may be empty.
    pub detail: String,
}

/// The kind of error; clients see its reason in `Status.details.causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    Required,
    Duplicate,
    Invalid,
    TypeInvalid,
    NotSupported,
    NotFound,
    Forbidden,
    TooLong,
    TooMany,
    TooFew,
    TooShort,
    Internal,
}

impl FieldErrorKind {
    /// The machine-readable name.
    pub fn reason(self) -> &'static str {
        match self {
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::Invalid => "FieldValueInvalid",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::NotFound => "FieldValueNotFound",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::TooFew => "FieldValueTooFew",
            FieldErrorKind::TooShort => "FieldValueTooShort",
            FieldErrorKind::Internal => "InternalError",
        }
    }

    /// The first words of the message.
    pub fn words(self) -> &'static str {
        match self {
            FieldErrorKind::Required => "Required value",
            FieldErrorKind::Duplicate => "Duplicate value",
            FieldErrorKind::Invalid | FieldErrorKind::TypeInvalid => "Invalid value",
            FieldErrorKind::NotSupported => "Unsupported value",
            FieldErrorKind::NotFound => "Not found",
            FieldErrorKind::Forbidden => "Forbidden",
            FieldErrorKind::TooLong => "Too long",
            FieldErrorKind::TooMany => "Too many",
            FieldErrorKind::TooFew => "Too few",
            FieldErrorKind::TooShort => "Too short",
            FieldErrorKind::Internal => "Internal error",
        }
    }
}

impl FieldError {
    /// An invalid value; `shown` is the value as the message prints it.
    pub fn invalid(path: &Path<'_>, shown: String, detail: impl Into<String>) -> FieldError {
        FieldError {
            kind: FieldErrorKind::Invalid,
            field: field_text(path),
            bad_value: Some(shown),
            detail: detail.into(),
        }
    }

    /// An invalid string.
    pub fn invalid_str(path: &Path<'_>, found: &str, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(path, Quoted(found).to_string(), detail)
    }

    /// A string that is not among the supported values.
    pub fn not_supported(path: &Path<'_>, found: &str, supported: &[&str]) -> FieldError {
        let quoted: Vec<String> = supported
            .iter()
            .map(|value| Quoted(value).to_string())
            .collect();

        let detail = match quoted.as_slice() {
            [] => String::new(),
            values => format!("supported values: {}", values.join(", ")),
        };

        let bad_value = Some(Quoted(found).to_string());
        FieldError {
            kind: FieldErrorKind::NotSupported,
            field: field_text(path),
            bad_value,
            detail,
        }
    }

    /// A missing value.
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::without_value(FieldErrorKind::Required, path, detail)
    }

    /// A value that must not be set.
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::without_value(FieldErrorKind::Forbidden, path, detail)
    }

    /// A duplicate value; `shown` is the value as the message prints it.
    pub fn duplicate(path: &Path<'_>, shown: String) -> FieldError {
        let kind = FieldErrorKind::Duplicate;
        FieldError {
            kind,
            field: field_text(path),
            bad_value: Some(shown),
            detail: String::new(),
        }
    }

    /// An internal error.
    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::without_value(FieldErrorKind::Internal, path, detail)
    }

    /// A reference to something that does not exist.
    pub fn not_found(path: &Path<'_>, found: &str) -> FieldError {
        let kind = FieldErrorKind::NotFound;
        let bad_value = Some(Quoted(found).to_string());
        FieldError {
            kind,
            field: field_text(path),
            bad_value,
            detail: String::new(),
        }
    }

    /// A list with more than `most` items.
    pub fn too_many(path: &Path<'_>, found: usize, most: usize) -> FieldError {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        let kind = FieldErrorKind::TooMany;
        FieldError {
            kind,
            field: field_text(path),
            bad_value: Some(found.to_string()),
            detail,
        }
    }

    /// A text longer than `most` bytes.
    pub fn too_long(path: &Path<'_>, most: usize) -> FieldError {
        let unit = if most == 1 { "byte" } else { "bytes" };
        FieldError::without_value(
            FieldErrorKind::TooLong,
            path,
            format!("may not be more than {most} {unit}"),
        )
    }

    fn without_value(
        kind: FieldErrorKind,
        path: &Path<'_>,
        detail: impl Into<String>,
    ) -> FieldError {
        FieldError {
            kind,
            field: field_text(path),
            bad_value: None,
            detail: detail.into(),
        }
    }

    /// The message without the field, as `Status.details.causes` has it.
    pub fn body(&self) -> impl fmt::Display {
        Body(self)
    }
}

/// An invalid text: one error for each message.
pub fn refuse(
    path: &Path<'_>,
    found: &str,
    messages: impl IntoIterator<Item = impl Into<String>>,
    errors: &mut FieldErrors,
) {
    errors.extend(
        messages
            .into_iter()
            .map(|message| FieldError::invalid_str(path, found, message)),
    );
}

/// A value as messages print it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => Float(*number).to_string(),
        Value::String(text) => Quoted(text).to_string(),
        other => as_json(other),
    }
}

/// A value as messages print it within others.
pub fn as_json(value: &Value) -> String {
    json::to_string(value)
}

fn field_text(path: &Path<'_>) -> String {
    match path {
        Path::Root => "<nil>".to_owned(),
        _ => path.to_string(),
    }
}

struct Body<'a>(&'a FieldError);

impl fmt::Display for Body<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.kind.words())?;
        if let Some(value) = &self.0.bad_value {
            write!(out, ": {value}")?;
        }
        if !self.0.detail.is_empty() {
            write!(out, ": {}", self.0.detail)?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, Body(self))
    }
}

impl std::error::Error for FieldError {}

/// A list of errors that takes a bounded amount of memory. Displayed without duplicates: a single
/// error as it is, several as `[a, b]`.
///
/// An object of a few hundred kilobytes can have a hundred thousand errors, each with its path and
/// value, and a response contains each of them twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors {
    found: Vec<FieldError>,
    /// Total size of their texts.
    bytes: usize,
    /// Some were dropped, which the last one reports.
    is_cut: bool,
}

/// Maximum size of the texts that are kept, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// Size of an error besides its texts.
const OVERHEAD: usize = 64;

impl FieldError {
    /// Approximate memory use.
    fn bytes(&self) -> usize {
        self.field.len()
            + self.detail.len()
            + self.bad_value.as_ref().map_or(0, String::len)
            + OVERHEAD
    }
}

impl FieldErrors {
    pub const fn new() -> FieldErrors {
        FieldErrors {
            found: Vec::new(),
            bytes: 0,
            is_cut: false,
        }
    }

    /// Adds an error, unless there are too many; then the last one reports that.
    pub fn push(&mut self, error: FieldError) {
        if self.bytes < MOST_BYTES {
            self.bytes += error.bytes();
            self.found.push(error);
        } else if !self.is_cut {
            let detail = "there are more errors than can be shown";
            self.found.push(FieldError::without_value(
                FieldErrorKind::Invalid,
                &Path::Root,
                detail,
            ));
            self.is_cut = true;
        }
    }

    /// Keeps only the first `length` errors.
    pub fn truncate(&mut self, length: usize) {
        self.is_cut &= length >= self.found.len();
        self.found.truncate(length);
        self.bytes = self.found.iter().map(FieldError::bytes).sum();
    }

    /// Whether errors were dropped, and further ones would be: validation may stop.
    pub fn is_full(&self) -> bool {
        self.is_cut
    }
}

impl std::ops::Deref for FieldErrors {
    type Target = [FieldError];

    fn deref(&self) -> &[FieldError] {
        &self.found
    }
}

impl std::ops::DerefMut for FieldErrors {
    fn deref_mut(&mut self) -> &mut [FieldError] {
        &mut self.found
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        for error in errors {
            self.push(error);
            if self.is_full() {
                return;
            }
        }
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> FieldErrors {
        let mut all = FieldErrors::default();
        all.extend(errors);
        all
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<String> = Vec::with_capacity(self.len());
        let mut seen = std::collections::HashSet::with_capacity(self.len());
        for error in self.iter() {
            let text = error.to_string();
            if seen.insert(text.clone()) {
                texts.push(text);
            }
        }

        match texts.as_slice() {
            [only] => out.write_str(only),
            several => write!(out, "[{}]", several.join(", ")),
        }
    }
}

impl std::error::Error for FieldErrors {}

impl From<FieldError> for FieldErrors {
    fn from(error: FieldError) -> FieldErrors {
        FieldErrors::from_iter([error])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_upstreams_text() {
        let spec = Path::Root.field("spec");
        let mode = spec.field("mode");
        let error = FieldError::not_supported(&mode, "X", &["A", "B"]);
        assert_eq!(
            error.to_string(),
            r#"spec.mode: Unsupported value: "X": supported values: "A", "B""#
        );

        assert_eq!(
            error.body().to_string(),
            r#"Unsupported value: "X": supported values: "A", "B""#
        );

        assert_eq!(error.kind.reason(), "FieldValueNotSupported");

        let nowhere = FieldError::invalid_str(&Path::Root, "a~b", "is odd");
        assert_eq!(
            nowhere.to_string(),
            r#"<nil>: Invalid value: "a~b": is odd"#
        );
    }

    #[test]
    fn several_errors_are_listed_once_each() {
        let one = FieldError::invalid_str(&Path::Root.field("a"), "x", "");
        let two = FieldError::invalid_str(&Path::Root.field("b"), "x", "no");
        assert_eq!(
            FieldErrors::from_iter([one.clone(), one.clone()]).to_string(),
            r#"a: Invalid value: "x""#
        );
        let both = FieldErrors::from_iter([one.clone(), two, one]);
        assert_eq!(
            both.to_string(),
            r#"[a: Invalid value: "x", b: Invalid value: "x": no]"#
        );
    }

    #[test]
    fn errors_take_a_bounded_amount_of_memory() {
        let error = |field_text: usize| {
            FieldError::duplicate(&Path::Root.field("a").index(field_text), "x".repeat(1000))
        };
        let mut errors = FieldErrors::default();
        (0..100_000).for_each(|field_text| errors.push(error(field_text)));
        assert!(errors.is_full());
        assert!(errors.len() < 2000, "{}", errors.len());

        let last = errors.last().map(FieldError::to_string);
        assert_eq!(
            last.as_deref(),
            Some("<nil>: Invalid value: there are more errors than can be shown")
        );

        // A single large error is kept.
        let large = FieldErrors::from(FieldError::invalid_str(
            &Path::Root.field("a"),
            &"x".repeat(2 << 20),
            "no",
        ));
        assert!(large.to_string().starts_with("a: Invalid value: \"xxx"));

        assert_eq!(large.len(), 1);
    }
}
