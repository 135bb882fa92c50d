//! Numbers that may be percentages: `3`, `25%`.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::validate_not_negative;
use crate::strategy::Errors;

/// Validates a number or percentage that is not negative.
pub(crate) fn validate_not_negative_int_or_percent(
    found: &IntOrString,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    match found {
        IntOrString::Int(number) => validate_not_negative((*number).into(), at, errors),
        IntOrString::String(text) => refuse(at, text, names::percent(text), errors),
    }
}

/// Validates a percentage that is at most 100%. A number may be anything.
pub(crate) fn validate_at_most_100_percent(
    found: &IntOrString,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if let IntOrString::String(text) = found
        && names::percent(text).is_empty()
        && text
            .trim_end_matches('%')
            .trim_start_matches('0')
            .parse::<u64>()
            .unwrap_or_default()
            > 100
    {
        errors.push(FieldError::invalid_str(
            at,
            text,
            "must not be greater than 100%",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn numbers_and_percentages_are_bounded() {
        let check = |found: IntOrString, expected: &[&str]| {
            let (at, mut errors) = (Path::Root.field("n"), Errors::new());
            validate_not_negative_int_or_percent(&found, &at, &mut errors);
            validate_at_most_100_percent(&found, &at, &mut errors);
            check_causes(&errors, expected);
        };

        check(IntOrString::Int(0), &[]);
        check(IntOrString::Int(1000), &[]);
        check(IntOrString::String("100%".into()), &[]);
        check(
            IntOrString::Int(-1),
            &["n: Invalid value: -1: must be greater than or equal to 0"],
        );

        check(
            IntOrString::String("5".into()),
            &["n: Invalid value: \"5\": a valid percent string"],
        );

        check(
            IntOrString::String("101%".into()),
            &["n: Invalid value: \"101%\": must not be greater than 100%"],
        );
    }
}
