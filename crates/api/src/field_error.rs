//! What is wrong with one field: `spec.replicas: Invalid value: -1: must be greater than or equal
//! to 0`.
//!
//! Whoever validates says which field, what it found there and what it wanted; the server puts the
//! parts into `Status.details.causes` and the whole into the message. The texts are upstream's.

use std::fmt;

use crate::codec::json;
use crate::go_text::{Float, Quoted};
use crate::value::{Path, Value};

/// One complaint about one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    /// Where: `spec.containers[0].image`, or `<nil>` where nobody said.
    pub field: String,
    /// What was found, as the message shows it: strings quoted, the rest as JSON. None: not shown.
    pub bad_value: Option<String>,
    /// What was wanted; may be empty.
    pub detail: String,
}

/// The sort of complaint; clients see its reason in `Status.details.causes`.
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

    /// The words that open the message.
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
    /// A value that breaks a rule; `shown` is the value as the message shows it.
    pub fn invalid(path: &Path<'_>, shown: String, detail: impl Into<String>) -> FieldError {
        FieldError {
            kind: FieldErrorKind::Invalid,
            field: place(path),
            bad_value: Some(shown),
            detail: detail.into(),
        }
    }

    /// A string that breaks a rule.
    pub fn invalid_str(path: &Path<'_>, found: &str, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(path, Quoted(found).to_string(), detail)
    }

    /// A string that is none of those allowed here.
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
            field: place(path),
            bad_value,
            detail,
        }
    }

    /// A value that must be given.
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::without_value(FieldErrorKind::Required, path, detail)
    }

    /// Something that may not be there.
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::without_value(FieldErrorKind::Forbidden, path, detail)
    }

    /// A value that stands there a second time; `shown` is the value as the message shows it.
    pub fn duplicate(path: &Path<'_>, shown: String) -> FieldError {
        let kind = FieldErrorKind::Duplicate;
        FieldError {
            kind,
            field: place(path),
            bad_value: Some(shown),
            detail: String::new(),
        }
    }

    /// Something that is not the writer's fault.
    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::without_value(FieldErrorKind::Internal, path, detail)
    }

    /// A name for which there is nothing.
    pub fn not_found(path: &Path<'_>, found: &str) -> FieldError {
        let kind = FieldErrorKind::NotFound;
        let bad_value = Some(Quoted(found).to_string());
        FieldError {
            kind,
            field: place(path),
            bad_value,
            detail: String::new(),
        }
    }

    /// A list longer than so many items.
    pub fn too_many(path: &Path<'_>, found: usize, most: usize) -> FieldError {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        let kind = FieldErrorKind::TooMany;
        FieldError {
            kind,
            field: place(path),
            bad_value: Some(found.to_string()),
            detail,
        }
    }

    /// A text longer than so many bytes.
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
            field: place(path),
            bad_value: None,
            detail: detail.into(),
        }
    }

    /// The message without the field, as `Status.details.causes` has it.
    pub fn body(&self) -> impl fmt::Display {
        Body(self)
    }
}

/// A text that breaks rules: a complaint for each message.
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

/// A value as messages show it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => Float(*number).to_string(),
        Value::String(text) => Quoted(text).to_string(),
        other => as_json(other),
    }
}

/// A value as messages show it within others.
pub fn as_json(value: &Value) -> String {
    json::to_string(value)
}

fn place(path: &Path<'_>) -> String {
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

/// Errors as they are gathered: together they take a bounded amount of memory, however many there
/// are. Printed each once: alone as it is, together as `[a, b]`.
///
/// An object of a few hundred kilobytes can have a hundred thousand errors, each of which names its
/// field and shows its value; nobody reads so many, and an answer says each of them twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors {
    found: Vec<FieldError>,
    /// How many bytes their texts have.
    bytes: usize,
    /// Some were not kept, which the last one says.
    is_cut: bool,
}

/// Texts of errors beyond so many bytes are not kept.
const MOST_BYTES: usize = 1024 * 1024;

/// What an error takes besides its texts.
const OVERHEAD: usize = 64;

impl FieldError {
    /// About how much memory it takes.
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

    /// Adds an error, unless there are too many; then the last one says so.
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

    /// Takes all errors away but the first so many.
    pub fn truncate(&mut self, length: usize) {
        self.is_cut &= length >= self.found.len();
        self.found.truncate(length);
        self.bytes = self.found.iter().map(FieldError::bytes).sum();
    }

    /// Whether some were not kept, and another would not be: a walk may end here.
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
    fn a_complaint_reads_as_upstream_words_it() {
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
    fn several_complaints_are_listed_once_each() {
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
        let error = |place: usize| {
            FieldError::duplicate(&Path::Root.field("a").index(place), "x".repeat(1000))
        };
        let mut errors = FieldErrors::default();
        (0..100_000).for_each(|place| errors.push(error(place)));
        assert!(errors.is_full());
        assert!(errors.len() < 2000, "{}", errors.len());

        let last = errors.last().map(FieldError::to_string);
        assert_eq!(
            last.as_deref(),
            Some("<nil>: Invalid value: there are more errors than can be shown")
        );

        // One that is large on its own is shown all the same.
        let large = FieldErrors::from(FieldError::invalid_str(
            &Path::Root.field("a"),
            &"x".repeat(2 << 20),
            "no",
        ));
        assert!(large.to_string().starts_with("a: Invalid value: \"xxx"));

        assert_eq!(large.len(), 1);
    }
}
