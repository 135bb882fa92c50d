//! `tolerations`.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::{Quoted, parse_int};
use coracle_api::names::{decimal_integer, label_value, qualified_name};
use k8s_openapi::api::core::v1::Toleration;

use super::validate_enum;
use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::text;

pub(crate) fn validate_tolerations(
    tolerations: &[Toleration],
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = at.index(index);
        let (key, operator) = (text(&toleration.key), text(&toleration.operator));
        if !key.is_empty() {
            refuse(&at.field("key"), key, qualified_name(key), errors);
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid_str(
                &at.field("operator"),
                operator,
                detail,
            ));
        }

        let effect = text(&toleration.effect);
        if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid_str(&at.field("effect"), effect, detail));
        }

        validate_value(operator, text(&toleration.value), &at, options, errors);

        if !effect.is_empty() {
            validate_enum(
                effect,
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
                &at.field("effect"),
                errors,
            );
        }
    }
}

/// Validates an operator and the value it compares with.
fn validate_value(
    operator: &str,
    value: &str,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    match operator {
        "Equal" | "" => {
            let messages = label_value(value);
            if !messages.is_empty() {
                errors.push(FieldError::invalid_str(
                    &at.field("operator"),
                    value,
                    messages.join(";"),
                ));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid_str(
                &at.field("operator"),
                value,
                detail,
            ));
        }
        "Exists" => {}
        "Lt" | "Gt" if options.comparing_tolerations => {
            let place = at.field("value");
            refuse(&place, value, decimal_integer(value), errors);
            if let Err(cause) = parse_int(value) {
                let detail = format!("strconv.ParseInt: parsing {}: {cause}", Quoted(value));
                errors.push(FieldError::invalid_str(&place, value, detail));
            }
        }
        "Lt" | "Gt" => {
            let known = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(
                &at.field("operator"),
                operator,
                &known,
            ));
        }
        other => validate_enum(other, &["Equal", "Exists"], &at.field("operator"), errors),
    }
}
