//! Checks that several kinds share.
//!
//! Kinds validate typed views ([`super::strategy`]). What many of them check is here once: numbers
//! that are not negative, enumerated values, immutable fields; `resources` has the names and
//! amounts of resources, `taints` taints, `internal` the form of whole structs in errors.

pub(crate) mod conditions;
pub(crate) mod int_or_percent;
pub(crate) mod internal;
pub(crate) mod internal_form;
pub(crate) mod resources;
pub(crate) mod taints;

use coracle_api::field_error::{FieldError, refuse, shown};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::names::Rule;
use coracle_api::{Path, Value};

use super::strategy::Errors;

/// The protocols of ports.
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The items of a list that may be absent.
pub(super) fn items<T>(list: &Option<Vec<T>>) -> &[T] {
    list.as_deref().unwrap_or_default()
}

/// A text that may be absent.
pub fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// Validates a text that is mandatory and must satisfy a rule.
pub(super) fn validate_required(found: &str, rule: Rule, at: &Path<'_>, errors: &mut Errors) {
    match found {
        "" => errors.push(FieldError::required(at, "")),
        found => refuse(at, found, rule(found), errors),
    }
}

/// Validates a text that is one of some values; upstream lists them in alphabetical order.
pub(super) fn validate_one_of(found: &str, words: &[&str], at: &Path<'_>, errors: &mut Errors) {
    debug_assert!(words.is_sorted());
    if !words.contains(&found) {
        errors.push(FieldError::not_supported(at, found, words));
    }
}

/// Validates a number that is at least zero.
pub(super) fn validate_not_negative(found: i64, at: &Path<'_>, errors: &mut Errors) {
    if found < 0 {
        errors.push(FieldError::invalid(
            at,
            found.to_string(),
            "must be greater than or equal to 0",
        ));
    }
}

/// Validates an immutable field. `absent` is how errors show its absence: a pointer's as `null`, a
/// text's as `""`.
pub(super) fn validate_immutable(
    new: &Value,
    old: &Value,
    path: &[&str],
    absent: &str,
    errors: &mut Errors,
) {
    validate_unchanged(
        new.at(path),
        old.at(path),
        &Path::Root.field(&path.join(".")),
        absent,
        errors,
    );
}

/// The same for a field that errors name differently.
pub(super) fn validate_unchanged(
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

/// Compares errors with the expected prefix of each.
#[cfg(test)]
pub(super) fn check_causes(errors: &[FieldError], expected: &[&str]) {
    let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, expected)| found.starts_with(expected));
    assert!(same, "{found:#?} is not {expected:#?}");
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn error_of_an_immutable_field_shows_the_new_value() {
        let check = |new: &str, old: &str, expected: &[&str]| {
            let read = |text: &str| json::parse(text.as_bytes()).unwrap();
            let mut errors = Errors::new();
            validate_immutable(&read(new), &read(old), &["spec", "a"], "null", &mut errors);
            check_causes(&errors, expected);
        };

        check(r#"{"spec":{"a":1}}"#, r#"{"spec":{"a":1}}"#, &[]);
        check(
            r#"{"spec":{"a":2}}"#,
            r#"{"spec":{"a":1}}"#,
            &["spec.a: Invalid value: 2: field is immutable"],
        );

        check(
            "{}",
            r#"{"spec":{"a":1}}"#,
            &["spec.a: Invalid value: null: field is immutable"],
        );
    }

    #[test]
    fn required_and_enumerated_texts() {
        let at = Path::Root.field("a");
        let mut errors = Errors::new();
        validate_required("", coracle_api::names::dns1123_label, &at, &mut errors);
        validate_required("A", coracle_api::names::dns1123_label, &at, &mut errors);
        validate_one_of("x", &["a", "b"], &at, &mut errors);
        validate_one_of("b", &["a", "b"], &at, &mut errors);
        validate_not_negative(-1, &at, &mut errors);

        let expected = [
            "a: Required value",
            "a: Invalid value: \"A\": a lowercase RFC 1123 label",
            "a: Unsupported value: \"x\": supported values: \"a\", \"b\"",
            "a: Invalid value: -1: must be greater than or equal to 0",
        ];
        check_causes(&errors, &expected);
    }
}
