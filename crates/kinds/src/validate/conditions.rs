//! Conditions of the common type, in a status.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, Value, names};

use super::{internal, validate_one_of};
use crate::strategy::Errors;

const LONGEST_REASON: usize = 1 << 10;
const LONGEST_MESSAGE: usize = 32 << 10;

const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Validates a list of conditions, whose types are unique.
pub(crate) fn validate(conditions: &[Value], at: &Path<'_>, errors: &mut Errors) {
    let mut types = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        let part = |name: &str| {
            condition
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };

        if !types.insert(part("type")) {
            errors.push(FieldError::duplicate(
                &at.field("type"),
                internal::text(part("type")),
            ));
        }

        refuse(
            &at.field("type"),
            part("type"),
            names::qualified_name(part("type")),
            errors,
        );

        validate_one_of(
            part("status"),
            &["False", "True", "Unknown"],
            &at.field("status"),
            errors,
        );

        let generation = condition
            .get("observedGeneration")
            .and_then(Value::as_int)
            .unwrap_or_default();

        if generation < 0 {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(
                &at.field("observedGeneration"),
                generation.to_string(),
                detail,
            ));
        }

        if part("lastTransitionTime").is_empty() {
            errors.push(FieldError::required(&at.field("lastTransitionTime"), ""));
        }

        validate_reason(part("reason"), &at.field("reason"), errors);

        if part("message").len() > LONGEST_MESSAGE {
            errors.push(FieldError::too_long(&at.field("message"), LONGEST_MESSAGE));
        }
    }
}

fn validate_reason(reason: &str, at: &Path<'_>, errors: &mut Errors) {
    let bytes = reason.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return errors.push(FieldError::required(at, ""));
    };
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"_,:".contains(byte);

    let ends = first.is_ascii_alphabetic() && (last.is_ascii_alphanumeric() || *last == b'_');
    if !ends || !bytes.iter().all(inner) {
        errors.push(FieldError::invalid_str(at, reason, REASON));
    }
    if reason.len() > LONGEST_REASON {
        errors.push(FieldError::too_long(at, LONGEST_REASON));
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn conditions_are_complete_and_their_types_unique() {
        let check = |conditions: &str, expected: &[&str]| {
            let conditions = json::parse(conditions.as_bytes()).unwrap();
            let mut errors = Errors::new();
            validate(
                conditions.as_array().unwrap(),
                &Path::Root.field("c"),
                &mut errors,
            );
            check_causes(&errors, expected);
        };

        let good = r#"{"type":"A","status":"True","reason":"Ok","lastTransitionTime":"2020-01-01T00:00:00Z"}"#;
        check(&format!("[{good}]"), &[]);
        check(
            &format!("[{good},{good}]"),
            &["c[1].type: Duplicate value: \"A\""],
        );

        check(
            r#"[{"type":"A","status":"x","observedGeneration":-1,"reason":"1"}]"#,
            &[
                "c[0].status: Unsupported value: \"x\": supported values: \"False\", \"True\", \"Unknown\"",
                "c[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
                "c[0].lastTransitionTime: Required value",
                "c[0].reason: Invalid value: \"1\": a condition reason must start",
            ],
        );
    }
}
