//! `behavior`: how fast an autoscaler scales up and down.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::autoscaling::v2::{HPAScalingPolicy, HPAScalingRules};

use crate::strategy::Errors;
use crate::validate::resources::{read, shown};
use crate::validate::{items, validate_one_of};

const LONGEST_WINDOW: i32 = 3600;
const LONGEST_PERIOD: i32 = 1800;

pub(super) fn validate(rules: Option<&HPAScalingRules>, at: &Path<'_>, errors: &mut Errors) {
    let Some(rules) = rules else { return };
    let window = rules.stabilization_window_seconds.unwrap_or_default();
    let place = at.field("stabilizationWindowSeconds");
    if window < 0 {
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&place, window.to_string(), detail));
    }

    validate_at_most(window, LONGEST_WINDOW, &place, errors);

    if let Some(select) = &rules.select_policy {
        validate_one_of(
            select,
            &["Disabled", "Max", "Min"],
            &at.field("selectPolicy"),
            errors,
        );
    }

    let place = at.field("policies");
    let policies = items(&rules.policies);
    if policies.is_empty() {
        errors.push(FieldError::required(
            &place,
            "must specify at least one Policy",
        ));
    }

    for (index, policy) in policies.iter().enumerate() {
        validate_policy(policy, &place.index(index), errors);
    }

    if let Some(tolerance) = rules
        .tolerance
        .as_ref()
        .map(read)
        .filter(|found| found.signum() < 0)
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            &at.field("tolerance"),
            shown(&tolerance),
            detail,
        ));
    }
}

fn validate_policy(policy: &HPAScalingPolicy, at: &Path<'_>, errors: &mut Errors) {
    validate_one_of(
        &policy.type_,
        &["Percent", "Pods"],
        &at.field("type"),
        errors,
    );

    for (name, found) in [
        ("value", policy.value),
        ("periodSeconds", policy.period_seconds),
    ] {
        if found <= 0 {
            errors.push(FieldError::invalid(
                &at.field(name),
                found.to_string(),
                "must be greater than zero",
            ));
        }
    }

    validate_at_most(
        policy.period_seconds,
        LONGEST_PERIOD,
        &at.field("periodSeconds"),
        errors,
    );
}

fn validate_at_most(found: i32, most: i32, at: &Path<'_>, errors: &mut Errors) {
    if found > most {
        let detail = format!("must be less than or equal to {most}");
        errors.push(FieldError::invalid(at, found.to_string(), detail));
    }
}
