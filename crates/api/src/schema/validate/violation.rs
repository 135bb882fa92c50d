//! Violations, formatted as upstream's validator does and turned into field errors as its API
//! server does.

use super::Walk;
use crate::Value;
use crate::field_error::{FieldError, FieldErrorKind, FieldErrors, as_json, shown};
use crate::go_text::Quoted;
use crate::value::Path;

pub(super) fn quoted(text: &str) -> String {
    Quoted(text).to_string()
}

/// The result of a walk.
pub(super) struct Outcome {
    failures: usize,
    /// The number of checks that passed, as upstream counts.
    matches: usize,
    /// `None`: messages are not needed.
    violations: Option<Vec<Violation>>,
    /// Size of the messages.
    bytes: usize,
    /// Whether the count is needed.
    counted: bool,
}

pub(super) struct Violation {
    /// The validator's message. Equal ones are one violation.
    message: String,
    error: FieldError,
}

/// A position in an outcome to return to.
pub(super) struct Mark {
    failures: usize,
    violations: usize,
    bytes: usize,
}

/// Maximum size of the messages. More than is ever shown, because duplicates are removed.
const MOST_BYTES: usize = 2 * 1024 * 1024;

impl Violation {
    fn bytes(&self) -> usize {
        let error = &self.error;
        let shown = error.bad_value.as_ref().map_or(0, String::len);
        self.message.len() + error.field.len() + error.detail.len() + shown + size_of::<Violation>()
    }
}

impl Outcome {
    pub(super) fn with_messages() -> Outcome {
        Outcome {
            failures: 0,
            matches: 0,
            violations: Some(Vec::new()),
            bytes: 0,
            counted: false,
        }
    }

    /// An empty one without messages, for a part of the same walk.
    pub(super) fn without_messages(&self) -> Outcome {
        Outcome {
            failures: 0,
            matches: 0,
            violations: None,
            bytes: 0,
            counted: self.counted,
        }
    }

    /// The outcome of one of several alternatives.
    pub(super) fn alternative() -> Outcome {
        Outcome {
            counted: true,
            ..Outcome::with_messages()
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.failures == 0
    }

    pub(super) fn has_messages(&self) -> bool {
        self.violations.is_some()
    }

    pub(super) fn counts(&self) -> bool {
        self.counted
    }

    pub(super) fn matches(&self) -> usize {
        self.matches
    }

    pub(super) fn matched(&mut self, checks: usize) {
        self.matches += checks;
    }

    pub(super) fn fail(&mut self, violation: impl FnOnce() -> Violation) {
        self.failures += 1;
        if let Some(violations) = &mut self.violations
            && self.bytes < MOST_BYTES
        {
            let violation = violation();
            self.bytes += violation.bytes();
            violations.push(violation);
        }
    }

    pub(super) fn merge(&mut self, other: Outcome) {
        self.failures += other.failures;
        self.matches += other.matches;
        if let (Some(violations), Some(others)) = (&mut self.violations, other.violations) {
            self.bytes += other.bytes;
            violations.extend(others);
        }
    }

    pub(super) fn mark(&self) -> Mark {
        let violations = self.violations.as_ref().map_or(0, Vec::len);
        Mark {
            failures: self.failures,
            violations,
            bytes: self.bytes,
        }
    }

    pub(super) fn failed_since(&self, mark: &Mark) -> bool {
        self.failures > mark.failures
    }

    pub(super) fn reset_to(&mut self, mark: &Mark) {
        self.failures = mark.failures;
        if let Some(violations) = &mut self.violations {
            violations.truncate(mark.violations);
            self.bytes = mark.bytes;
        }
    }

    /// The errors, each once, in the order they were found.
    pub(super) fn into_errors(self) -> FieldErrors {
        let violations = self.violations.unwrap_or_default();
        let mut seen = std::collections::HashSet::with_capacity(violations.len());
        let new = violations
            .into_iter()
            .filter(|violation| seen.insert(violation.message.clone()));
        new.map(|violation| violation.error).collect()
    }
}

impl Walk<'_> {
    pub(super) fn wrong_type(&self, wanted: &str, found: &'static str, at: &Path<'_>) -> Violation {
        let message = format!(
            "{} in body must be of type {wanted}: {}",
            at.with_dots(),
            Quoted(found)
        );
        self.message(
            FieldErrorKind::TypeInvalid,
            Some(quoted(found)),
            message,
            at,
        )
    }

    pub(super) fn wrong_format(&self, wanted: &str, text: &str, at: &Path<'_>) -> Violation {
        let message = format!(
            "{} in body must be of type {wanted}: {}",
            at.with_dots(),
            Quoted(text)
        );
        self.message(FieldErrorKind::TypeInvalid, Some(quoted(text)), message, at)
    }

    /// The value violates a constraint: `spec.x in body should …`.
    pub(super) fn invalid(&self, shown: String, wanted: &str, at: &Path<'_>) -> Violation {
        let message = format!("{} in body {wanted}", at.with_dots());
        self.message(FieldErrorKind::Invalid, Some(shown), message, at)
    }

    /// As [`Walk::invalid`], with a message that does not begin with the path.
    pub(super) fn invalid_in_words(
        &self,
        shown: String,
        message: String,
        at: &Path<'_>,
    ) -> Violation {
        self.message(FieldErrorKind::Invalid, Some(shown), message, at)
    }

    /// Upstream reports no field here, but mentions it in the message.
    pub(super) fn invalid_somewhere(&self, message: String) -> Violation {
        self.message(
            FieldErrorKind::Invalid,
            Some(quoted("")),
            message,
            &Path::Root,
        )
    }

    pub(super) fn forbidden_property(&self, name: &str, at: &Path<'_>) -> Violation {
        let message = format!("{}.{name} in body is a forbidden property", at.with_dots());
        self.message(FieldErrorKind::Invalid, Some(quoted(name)), message, at)
    }

    pub(super) fn required(&self, at: &Path<'_>) -> Violation {
        let message = format!("{} in body is required", at.with_dots());
        self.violation_with(FieldErrorKind::Required, None, message, String::new(), at)
    }

    pub(super) fn too_long(&self, most: i64, at: &Path<'_>) -> Violation {
        let message = format!(
            "{} in body should be at most {most} chars long",
            at.with_dots()
        );
        let detail = match most {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {most} bytes"),
            _ => "value is too long".to_owned(),
        };
        self.violation_with(FieldErrorKind::TooLong, None, message, detail, at)
    }

    pub(super) fn too_many(&self, count: i64, most: i64, of: &str, at: &Path<'_>) -> Violation {
        let message = format!("{} in body should have at most {most} {of}", at.with_dots());
        let detail = match most {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {most} items"),
            _ => "has too many items".to_owned(),
        };

        self.violation_with(
            FieldErrorKind::TooMany,
            Some(count.to_string()),
            message,
            detail,
            at,
        )
    }

    pub(super) fn not_supported(
        &self,
        value: &Value,
        allowed: &[Value],
        at: &Path<'_>,
    ) -> Violation {
        let names = allowed.iter().map(|value| match value {
            Value::String(text) => quoted(text),
            other => quoted(&as_json(other)),
        });
        let detail = format!("supported values: {}", names.collect::<Vec<_>>().join(", "));

        let message = format!("{} in body should be one of {detail}", at.with_dots());
        self.violation_with(
            FieldErrorKind::NotSupported,
            Some(shown(value)),
            message,
            detail,
            at,
        )
    }

    fn message(
        &self,
        kind: FieldErrorKind,
        shown: Option<String>,
        message: String,
        at: &Path<'_>,
    ) -> Violation {
        let detail = message.clone();
        self.violation_with(kind, shown, message, detail, at)
    }

    fn violation_with(
        &self,
        kind: FieldErrorKind,
        bad_value: Option<String>,
        message: String,
        detail: String,
        at: &Path<'_>,
    ) -> Violation {
        Violation {
            message,
            error: FieldError {
                kind,
                field: self.field(at),
                bad_value,
                detail,
            },
        }
    }

    fn field(&self, at: &Path<'_>) -> String {
        let below = at.with_dots().to_string();
        let below = below.strip_prefix('.').unwrap_or(&below);
        match (self.base, below) {
            (Path::Root, "") => "<nil>".to_owned(),
            (Path::Root, below) => below.to_owned(),
            (base, "") => base.to_string(),
            (base, below) => format!("{base}.{below}"),
        }
    }
}
