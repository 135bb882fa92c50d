//! Validates a label selector in an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::field_error::{FieldError, FieldErrors, refuse};
use crate::meta::validate::labels;
use crate::names;
use crate::value::Path;

/// How the values of a selector's expressions are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// As label values.
    Validated,
    /// Not at all: the old object has invalid ones already.
    Kept,
}

/// Validates a label selector; `None` is valid and selects nothing.
pub fn validate(
    selector: Option<&LabelSelector>,
    values: Values,
    at: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let Some(selector) = selector else { return };
    labels(
        selector.match_labels.iter().flatten(),
        &at.field("matchLabels"),
        errors,
    );
    let at = at.field("matchExpressions");
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        validate_requirement(requirement, values, &at.index(index), errors);
    }
}

/// Whether some value of an expression is no label value.
pub fn has_bad_value(selector: Option<&LabelSelector>) -> bool {
    let expressions = selector
        .into_iter()
        .flat_map(|selector| selector.match_expressions.iter().flatten());
    expressions
        .flat_map(|expression| expression.values.iter().flatten())
        .any(|value| !names::label_value(value).is_empty())
}

fn validate_requirement(
    requirement: &LabelSelectorRequirement,
    values: Values,
    at: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let given = requirement.values.as_deref().unwrap_or_default();
    let path = at.field("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if given.is_empty() => {
            errors.push(FieldError::required(
                &path,
                "must be specified when `operator` is 'In' or 'NotIn'",
            ));
        }
        "Exists" | "DoesNotExist" if !given.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            errors.push(FieldError::invalid_str(
                &at.field("operator"),
                other,
                "not a valid selector operator",
            ));
        }
    }

    refuse(
        &at.field("key"),
        &requirement.key,
        names::qualified_name(&requirement.key),
        errors,
    );

    if values == Values::Validated {
        for (index, value) in given.iter().enumerate() {
            refuse(&path.index(index), value, names::label_value(value), errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expressions: &[(&str, &str, &[&str])], expected: &[&str]) {
        let expressions =
            expressions
                .iter()
                .map(|(key, operator, values)| LabelSelectorRequirement {
                    key: (*key).to_owned(),
                    operator: (*operator).to_owned(),
                    values: Some(values.iter().map(|value| (*value).to_owned()).collect()),
                });

        let selector = LabelSelector {
            match_expressions: Some(expressions.collect()),
            ..LabelSelector::default()
        };

        let mut errors = FieldErrors::default();
        validate(
            Some(&selector),
            Values::Validated,
            &Path::Root.field("s"),
            &mut errors,
        );

        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");

        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found} is not {expected}");
        }
    }

    #[test]
    fn expressions_have_a_key_an_operator_and_the_values_it_needs() {
        check(&[("a", "In", &["x"]), ("a", "Exists", &[])], &[]);
        check(
            &[("a", "In", &[])],
            &["s.matchExpressions[0].values: Required value: must be specified when"],
        );

        check(
            &[("a", "DoesNotExist", &["x"])],
            &["s.matchExpressions[0].values: Forbidden: may not be"],
        );

        check(
            &[("a", "Exists", &[]), ("", "Near", &["a b"])],
            &[
                "s.matchExpressions[1].operator: Invalid value: \"Near\": not a valid selector operator",
                "s.matchExpressions[1].key: Invalid value: \"\": name part must be non-empty",
                "s.matchExpressions[1].key: Invalid value: \"\": name part must consist",
                "s.matchExpressions[1].values[0]: Invalid value: \"a b\": a valid label must be",
            ],
        );
    }
}
