//! Complaints, worded as upstream's validator words them and turned into field errors as its API
//! server does.

use super::Walk;
use crate::Value;
use crate::field_error::{FieldError, FieldErrorKind, FieldErrors, as_json, shown};
use crate::go_text::Quoted;
use crate::value::Path;

pub(super) fn quoted(text: &str) -> String {
    Quoted(text).to_string()
}

/// What a walk found.
pub(super) struct Outcome {
    failures: usize,
    /// What was checked, by upstream's count.
    matches: usize,
    /// None: nobody wants the words.
    complaints: Option<Vec<Complaint>>,
    /// How many bytes these words have.
    bytes: usize,
    /// Whether anybody will look at the count.
    counted: bool,
}

pub(super) struct Complaint {
    /// The validator's own words. Equal ones are one complaint.
    message: String,
    error: FieldError,
}

/// A place in an outcome to go back to.
pub(super) struct Mark {
    failures: usize,
    complaints: usize,
    bytes: usize,
}

/// Beyond so many bytes nothing is worded. More than is ever shown, for what is the same twice is
/// shown once.
const MOST_BYTES: usize = 2 * 1024 * 1024;

impl Complaint {
    fn bytes(&self) -> usize {
        let error = &self.error;
        let shown = error.bad_value.as_ref().map_or(0, String::len);
        self.message.len() + error.field.len() + error.detail.len() + shown + size_of::<Complaint>()
    }
}

impl Outcome {
    pub(super) fn loud() -> Outcome {
        Outcome {
            failures: 0,
            matches: 0,
            complaints: Some(Vec::new()),
            bytes: 0,
            counted: false,
        }
    }

    /// An empty one without words, for a part of the same walk.
    pub(super) fn in_silence(&self) -> Outcome {
        Outcome {
            failures: 0,
            matches: 0,
            complaints: None,
            bytes: 0,
            counted: self.counted,
        }
    }

    /// Complaints of one of several alternatives.
    pub(super) fn alternative() -> Outcome {
        Outcome {
            counted: true,
            ..Outcome::loud()
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.failures == 0
    }

    pub(super) fn is_loud(&self) -> bool {
        self.complaints.is_some()
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

    pub(super) fn fail(&mut self, complaint: impl FnOnce() -> Complaint) {
        self.failures += 1;
        if let Some(complaints) = &mut self.complaints
            && self.bytes < MOST_BYTES
        {
            let complaint = complaint();
            self.bytes += complaint.bytes();
            complaints.push(complaint);
        }
    }

    pub(super) fn merge(&mut self, other: Outcome) {
        self.failures += other.failures;
        self.matches += other.matches;
        if let (Some(complaints), Some(others)) = (&mut self.complaints, other.complaints) {
            self.bytes += other.bytes;
            complaints.extend(others);
        }
    }

    pub(super) fn mark(&self) -> Mark {
        let complaints = self.complaints.as_ref().map_or(0, Vec::len);
        Mark {
            failures: self.failures,
            complaints,
            bytes: self.bytes,
        }
    }

    pub(super) fn failed_since(&self, mark: &Mark) -> bool {
        self.failures > mark.failures
    }

    pub(super) fn forget(&mut self, mark: &Mark) {
        self.failures = mark.failures;
        if let Some(complaints) = &mut self.complaints {
            complaints.truncate(mark.complaints);
            self.bytes = mark.bytes;
        }
    }

    /// The errors, each once, in the order they were found.
    pub(super) fn into_errors(self) -> FieldErrors {
        let complaints = self.complaints.unwrap_or_default();
        let mut seen = std::collections::HashSet::with_capacity(complaints.len());
        let new = complaints
            .into_iter()
            .filter(|complaint| seen.insert(complaint.message.clone()));
        new.map(|complaint| complaint.error).collect()
    }
}

impl Walk<'_> {
    pub(super) fn wrong_type(&self, wanted: &str, found: &'static str, at: &Path<'_>) -> Complaint {
        let message = format!(
            "{} in body must be of type {wanted}: {}",
            at.with_dots(),
            Quoted(found)
        );
        self.said(
            FieldErrorKind::TypeInvalid,
            Some(quoted(found)),
            message,
            at,
        )
    }

    pub(super) fn wrong_format(&self, wanted: &str, text: &str, at: &Path<'_>) -> Complaint {
        let message = format!(
            "{} in body must be of type {wanted}: {}",
            at.with_dots(),
            Quoted(text)
        );
        self.said(FieldErrorKind::TypeInvalid, Some(quoted(text)), message, at)
    }

    /// The value breaks a rule: `spec.x in body should …`.
    pub(super) fn invalid(&self, shown: String, wanted: &str, at: &Path<'_>) -> Complaint {
        let message = format!("{} in body {wanted}", at.with_dots());
        self.said(FieldErrorKind::Invalid, Some(shown), message, at)
    }

    /// As [`Walk::invalid`], in words that do not begin with the place.
    pub(super) fn invalid_in_words(
        &self,
        shown: String,
        message: String,
        at: &Path<'_>,
    ) -> Complaint {
        self.said(FieldErrorKind::Invalid, Some(shown), message, at)
    }

    /// Upstream does not say in which field, but in words.
    pub(super) fn invalid_somewhere(&self, message: String) -> Complaint {
        self.said(
            FieldErrorKind::Invalid,
            Some(quoted("")),
            message,
            &Path::Root,
        )
    }

    pub(super) fn forbidden_property(&self, name: &str, at: &Path<'_>) -> Complaint {
        let message = format!("{}.{name} in body is a forbidden property", at.with_dots());
        self.said(FieldErrorKind::Invalid, Some(quoted(name)), message, at)
    }

    pub(super) fn required(&self, at: &Path<'_>) -> Complaint {
        let message = format!("{} in body is required", at.with_dots());
        self.worded(FieldErrorKind::Required, None, message, String::new(), at)
    }

    pub(super) fn too_long(&self, most: i64, at: &Path<'_>) -> Complaint {
        let message = format!(
            "{} in body should be at most {most} chars long",
            at.with_dots()
        );
        let detail = match most {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {most} bytes"),
            _ => "value is too long".to_owned(),
        };
        self.worded(FieldErrorKind::TooLong, None, message, detail, at)
    }

    pub(super) fn too_many(&self, count: i64, most: i64, of: &str, at: &Path<'_>) -> Complaint {
        let message = format!("{} in body should have at most {most} {of}", at.with_dots());
        let detail = match most {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {most} items"),
            _ => "has too many items".to_owned(),
        };

        self.worded(
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
    ) -> Complaint {
        let names = allowed.iter().map(|value| match value {
            Value::String(text) => quoted(text),
            other => quoted(&as_json(other)),
        });
        let detail = format!("supported values: {}", names.collect::<Vec<_>>().join(", "));

        let message = format!("{} in body should be one of {detail}", at.with_dots());
        self.worded(
            FieldErrorKind::NotSupported,
            Some(shown(value)),
            message,
            detail,
            at,
        )
    }

    fn said(
        &self,
        kind: FieldErrorKind,
        shown: Option<String>,
        message: String,
        at: &Path<'_>,
    ) -> Complaint {
        let detail = message.clone();
        self.worded(kind, shown, message, detail, at)
    }

    fn worded(
        &self,
        kind: FieldErrorKind,
        bad_value: Option<String>,
        message: String,
        detail: String,
        at: &Path<'_>,
    ) -> Complaint {
        Complaint {
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
