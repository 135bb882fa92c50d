//! What several kinds ask of a field.
//!
//! Kinds judge typed views ([`super::strategy`]). What is the same in many of them has its words here once: numbers that
//! are not negative, words of a list, fields that never change; `resources` has the names and amounts of resources,
//! `taints` taints, `internal` what whole structs look like in messages.

pub(in crate::registry) mod conditions;
pub(in crate::registry) mod int_or_percent;
pub(in crate::registry) mod internal;
pub(in crate::registry) mod resources;
pub(in crate::registry) mod taints;

use coracle_api::field_error::{FieldError, refuse, shown};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::names::Rule;
use coracle_api::{Path, Value};

use super::strategy::Errors;

/// What ports speak.
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The items of a list that may be absent.
pub(super) fn items<T>(list: &Option<Vec<T>>) -> &[T] {
    list.as_deref().unwrap_or_default()
}

/// A text that may be absent.
pub(super) fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// Judges a text that must be there and keep a rule.
pub(super) fn required(found: &str, rule: Rule, at: &Path<'_>, errors: &mut Errors) {
    match found {
        "" => errors.push(FieldError::required(at, "")),
        found => refuse(at, found, rule(found), errors),
    }
}

/// Judges a text that is one of some words; upstream names them in the order of the alphabet.
pub(super) fn one_of(found: &str, words: &[&str], at: &Path<'_>, errors: &mut Errors) {
    debug_assert!(words.is_sorted());
    if !words.contains(&found) {
        errors.push(FieldError::not_supported(at, found, words));
    }
}

/// Judges a number that is at least zero.
pub(super) fn not_negative(found: i64, at: &Path<'_>, errors: &mut Errors) {
    if found < 0 {
        errors.push(FieldError::invalid(at, found.to_string(), "must be greater than or equal to 0"));
    }
}

/// Judges a field that never changes. `absent` is how its absence is shown: a pointer's as `null`, a text's as `""`.
pub(super) fn immutable(new: &Value, old: &Value, path: &[&str], absent: &str, errors: &mut Errors) {
    unchanged(new.at(path), old.at(path), &Path::Root.field(&path.join(".")), absent, errors);
}

/// The same for a field that is called otherwise in complaints.
pub(super) fn unchanged(
    new: Option<&Value>,
    old: Option<&Value>,
    at: &Path<'_>,
    absent: &str,
    errors: &mut Errors,
) {
    if new != old {
        let found = new.map_or_else(|| absent.to_owned(), shown);
        errors.push(FieldError::invalid(at, found, IMMUTABLE));
    }
}
