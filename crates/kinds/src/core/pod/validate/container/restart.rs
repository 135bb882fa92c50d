//! Restart policies of containers.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{Container, ContainerRestartRule};

use super::super::validate_enum;
use crate::strategy::Errors;
use crate::validate::items;

const POLICY_MISSING: &str = "must specify restartPolicy when restart rules are used";
const RULES: usize = 20;
const EXIT_CODES: usize = 255;

/// Whether a container is restarted for as long as its pod runs.
pub(super) fn always(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// Validates the policy of an init container; rules without a policy are not validated.
pub(super) fn validate_init_restart_policy(
    container: &Container,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if container.restart_policy.is_some() {
        validate_restart_policy(container, at, errors);
    } else if !items(&container.restart_policy_rules).is_empty() {
        errors.push(FieldError::required(
            &at.field("restartPolicy"),
            POLICY_MISSING,
        ));
    }
}

/// Validates the policy of a container that has one of its own.
pub(super) fn validate_restart_policy(container: &Container, at: &Path<'_>, errors: &mut Errors) {
    let rules = items(&container.restart_policy_rules);
    let place = at.field("restartPolicy");
    match &container.restart_policy {
        Some(policy) => validate_enum(policy, &["Always", "Never", "OnFailure"], &place, errors),
        None if rules.is_empty() => return,
        None => {
            errors.push(FieldError::required(&place, POLICY_MISSING));
        }
    }

    let at = at.field("restartPolicyRules");
    if rules.len() > RULES {
        errors.push(FieldError::too_many(&at, rules.len(), RULES));
    }

    for (index, given) in rules.iter().enumerate() {
        validate_rule(given, &at.index(index), errors);
    }
}

fn validate_rule(rule: &ContainerRestartRule, at: &Path<'_>, errors: &mut Errors) {
    validate_enum(
        &rule.action,
        &["Restart", "RestartAllContainers"],
        &at.field("action"),
        errors,
    );

    let at = at.field("exitCodes");
    let Some(codes) = &rule.exit_codes else {
        errors.push(FieldError::required(&at, "must be specified"));
        return;
    };

    validate_enum(
        &codes.operator,
        &["In", "NotIn"],
        &at.field("operator"),
        errors,
    );

    let values = items(&codes.values).len();
    if values > EXIT_CODES {
        errors.push(FieldError::too_many(
            &at.field("values"),
            values,
            EXIT_CODES,
        ));
    }
}
