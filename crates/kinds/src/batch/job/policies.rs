//! The pod failure policy and the success policy.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, Value, names};
use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule, SuccessPolicy, SuccessPolicyRule,
};

use super::{indexes, spec};
use crate::strategy::Errors;
use crate::validate::{internal, items, text, validate_not_negative};

const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;
const MOST_CONDITIONS: usize = 20;
const LONGEST_INDEXES: usize = 64 << 10;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

pub(super) fn validate_failure(
    policy: &PodFailurePolicy,
    spec: &JobSpec,
    tree: Option<&Value>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let at = at.field("rules");
    if policy.rules.len() > MOST_RULES {
        errors.push(FieldError::too_many(&at, policy.rules.len(), MOST_RULES));
    }

    let pod = spec.template.spec.as_ref();
    let containers: BTreeSet<&str> = pod
        .into_iter()
        .flat_map(|pod| pod.containers.iter().chain(items(&pod.init_containers)))
        .map(|container| container.name.as_str())
        .collect();

    let trees = tree
        .and_then(|tree| tree.get("rules"))
        .and_then(Value::as_array)
        .unwrap_or_default();

    for (index, rule) in policy.rules.iter().enumerate() {
        validate_failure_rule(
            rule,
            spec,
            trees.get(index),
            &containers,
            &at.index(index),
            errors,
        );
    }
}

fn validate_failure_rule(
    rule: &PodFailurePolicyRule,
    spec: &JobSpec,
    tree: Option<&Value>,
    containers: &BTreeSet<&str>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let place = at.field("action");
    match rule.action.as_str() {
        "" => errors.push(FieldError::required(&place, valid(&ACTIONS))),
        "FailIndex" if spec.backoff_limit_per_index.is_none() => {
            let why = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid_str(&place, &rule.action, why));
        }
        action if !ACTIONS.contains(&action) => {
            errors.push(FieldError::not_supported(&place, action, &ACTIONS))
        }
        _ => {}
    }

    if let Some(codes) = &rule.on_exit_codes {
        let given = tree.and_then(|tree| tree.at(&["onExitCodes", "values"]));
        validate_exit_codes(codes, given, containers, &at.field("onExitCodes"), errors);
    }

    let patterns = items(&rule.on_pod_conditions);
    if !patterns.is_empty() {
        validate_conditions(patterns, &at.field("onPodConditions"), errors);
    }

    let why = match (rule.on_exit_codes.is_some(), !patterns.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };

    errors.push(FieldError {
        bad_value: None,
        ..FieldError::invalid(at, String::new(), why)
    });
}

fn valid(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("valid values: [{}]", words.join(" "))
}

fn validate_exit_codes(
    codes: &PodFailurePolicyOnExitCodesRequirement,
    given: Option<&Value>,
    containers: &BTreeSet<&str>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let place = at.field("operator");
    match codes.operator.as_str() {
        "" => errors.push(FieldError::required(&place, valid(&OPERATORS))),
        operator if !OPERATORS.contains(&operator) => {
            errors.push(FieldError::not_supported(&place, operator, &OPERATORS));
        }
        _ => {}
    }

    if let Some(name) = codes
        .container_name
        .as_deref()
        .filter(|name| !containers.contains(name))
    {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid_str(
            &at.field("containerName"),
            name,
            why,
        ));
    }

    let (place, values) = (at.field("values"), &codes.values);
    let shown = internal::list(values.iter().map(ToString::to_string));
    if values.is_empty() {
        let shown = if matches!(given, Some(Value::Array(_))) {
            shown.clone()
        } else {
            "null".to_owned()
        };

        errors.push(FieldError::invalid(
            &place,
            shown,
            "at least one value is required",
        ));
    } else if values.len() > MOST_CODES {
        errors.push(FieldError::too_many(&place, values.len(), MOST_CODES));
    }

    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        let at = place.index(index);
        if codes.operator == "In" && *value == 0 {
            errors.push(FieldError::invalid(
                &at,
                "0".to_owned(),
                "must not be 0 for the In operator",
            ));
        }

        if !seen.insert(value) {
            errors.push(FieldError::duplicate(&at, value.to_string()));
        }
    }

    if !values.is_sorted() {
        errors.push(FieldError::invalid(&place, shown, "must be ordered"));
    }
}

fn validate_conditions(
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if patterns.len() > MOST_CONDITIONS {
        errors.push(FieldError::too_many(at, patterns.len(), MOST_CONDITIONS));
    }

    for (index, pattern) in patterns.iter().enumerate() {
        let at = at.index(index);
        refuse(
            &at.field("type"),
            &pattern.type_,
            names::qualified_name(&pattern.type_),
            errors,
        );

        let place = at.field("status");
        match text(&pattern.status) {
            "" => errors.push(FieldError::required(&place, valid(&STATUSES))),
            status if !STATUSES.contains(&status) => {
                errors.push(FieldError::not_supported(&place, status, &STATUSES));
            }
            _ => {}
        }
    }
}

pub(super) fn validate_success(
    policy: &SuccessPolicy,
    job: &JobSpec,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if !spec::is_indexed(job) {
        errors.push(FieldError::invalid(
            at,
            success_shown(policy),
            "requires indexed completion mode",
        ));
        return;
    }

    let at = at.field("rules");
    if policy.rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&at, why));
    }

    if policy.rules.len() > MOST_RULES {
        errors.push(FieldError::too_many(&at, policy.rules.len(), MOST_RULES));
    }

    for (index, rule) in policy.rules.iter().enumerate() {
        validate_success_rule(
            rule,
            job.completions.unwrap_or_default(),
            &at.index(index),
            errors,
        );
    }
}

fn validate_success_rule(
    rule: &SuccessPolicyRule,
    completions: i32,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(at, why));
    }

    let mut total = 0;
    if let Some(list) = &rule.succeeded_indexes {
        let place = at.field("succeededIndexes");
        if list.len() > LONGEST_INDEXES {
            errors.push(FieldError::too_long(&place, LONGEST_INDEXES));
        }

        match indexes::count(list, completions) {
            Ok(count) => total = count,
            Err(why) => {
                let why = format!("error parsing succeededIndexes: {why}");
                errors.push(FieldError::invalid_str(&place, list, why));
            }
        }
    }

    let Some(count) = rule.succeeded_count else {
        return;
    };
    let place = at.field("succeededCount");
    validate_not_negative(count.into(), &place, errors);

    if count > completions {
        let why = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        errors.push(FieldError::invalid(&place, count.to_string(), why));
    }

    if rule.succeeded_indexes.is_some() && i64::from(count) > total {
        let why = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(FieldError::invalid(&place, count.to_string(), why));
    }
}

/// The policy as errors show it.
pub(super) fn success_shown(policy: &SuccessPolicy) -> String {
    let rules = internal::list(policy.rules.iter().map(|rule| {
        internal::object(&[
            (
                "SucceededIndexes",
                internal::pointer(rule.succeeded_indexes.as_deref().map(internal::text)),
            ),
            (
                "SucceededCount",
                internal::pointer(rule.succeeded_count.map(|count| count.to_string())),
            ),
        ])
    }));

    internal::object(&[("Rules", rules)])
}

/// The same for the failure policy; the `tree` distinguishes absent lists from empty ones.
pub(super) fn failure_shown(policy: &PodFailurePolicy, tree: Option<&Value>) -> String {
    let rules = tree
        .and_then(|tree| tree.get("rules"))
        .and_then(Value::as_array);
    let is_given = |index: usize, path: &[&str]| {
        let found = rules.and_then(|rules| rules.get(index)?.at(path));
        matches!(found, Some(Value::Array(_)))
    };

    let rule = |(index, rule): (usize, &PodFailurePolicyRule)| {
        let codes = rule.on_exit_codes.as_ref().map(|codes| {
            let values = internal::list(codes.values.iter().map(ToString::to_string));
            let values = is_given(index, &["onExitCodes", "values"]).then_some(values);
            internal::object(&[
                (
                    "ContainerName",
                    internal::pointer(codes.container_name.as_deref().map(internal::text)),
                ),
                ("Operator", internal::text(&codes.operator)),
                ("Values", internal::pointer(values)),
            ])
        });

        let conditions = rule.on_pod_conditions.as_ref().map(|patterns| {
            internal::list(patterns.iter().map(|pattern| {
                internal::object(&[
                    ("Type", internal::text(&pattern.type_)),
                    ("Status", internal::text(text(&pattern.status))),
                ])
            }))
        });

        internal::object(&[
            ("Action", internal::text(&rule.action)),
            ("OnExitCodes", internal::pointer(codes)),
            ("OnPodConditions", internal::pointer(conditions)),
        ])
    };

    let list = internal::list(policy.rules.iter().enumerate().map(rule));
    let list = if policy.rules.is_empty() && rules.is_none() {
        "null".to_owned()
    } else {
        list
    };

    internal::object(&[("Rules", list)])
}
