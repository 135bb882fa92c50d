//! The spec of a Job, also within a CronJob.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, Value, names};
use k8s_openapi::api::batch::v1::JobSpec;

use super::policies;
use crate::apps::workload;
use crate::core::pod;
use crate::strategy::Errors;
use crate::validate::text;

const MOST_AT_ONCE: i32 = 100_000;
const MOST_FAILED: i32 = 100_000;
/// Above this number of completions, other fields are bounded too.
const MANY: i32 = 100_000;
const MOST_WITH_MANY: i32 = 10_000;
const LONGEST_MANAGER: usize = 63;

/// Validates all but the selector. `tree` is what the spec was read from.
pub(in crate::batch) fn validate(
    spec: &JobSpec,
    tree: Option<&Value>,
    at: &Path<'_>,
    options: &pod::Options,
    errors: &mut Errors,
) {
    let numbers = [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        (
            "ttlSecondsAfterFinished",
            spec.ttl_seconds_after_finished.map(i64::from),
        ),
        (
            "backoffLimitPerIndex",
            spec.backoff_limit_per_index.map(i64::from),
        ),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ];
    workload::validate_not_negative(at, &numbers, errors);

    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        let why = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&at.field("backoffLimitPerIndex"), why));
    }

    if let Some(manager) = &spec.managed_by {
        validate_manager_name(manager, &at.field("managedBy"), errors);
    }

    validate_completion(spec, at, errors);

    if let Some(policy) = &spec.pod_failure_policy {
        let tree = tree.and_then(|tree| tree.get("podFailurePolicy"));
        policies::validate_failure(policy, spec, tree, &at.field("podFailurePolicy"), errors);
    }

    if let Some(policy) = &spec.success_policy {
        policies::validate_success(policy, spec, &at.field("successPolicy"), errors);
    }

    validate_replacement(spec, &at.field("podReplacementPolicy"), errors);
    pod::validate_template(&spec.template, &at.field("template"), options, errors);
    validate_restarts(spec, &at.field("template").field("spec"), errors);
}

pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

fn validate_manager_name(manager: &str, at: &Path<'_>, errors: &mut Errors) {
    match manager {
        "" => errors.push(FieldError::required(at, "")),
        manager => refuse(at, manager, names::domain_prefixed_path(manager), errors),
    }
    if manager.len() > LONGEST_MANAGER {
        errors.push(FieldError::too_long(at, LONGEST_MANAGER));
    }
}

fn validate_completion(spec: &JobSpec, at: &Path<'_>, errors: &mut Errors) {
    let mode = spec.completion_mode.as_deref();
    if let Some(mode) = mode.filter(|mode| !["NonIndexed", "Indexed"].contains(mode)) {
        errors.push(FieldError::not_supported(
            &at.field("completionMode"),
            mode,
            &["NonIndexed", "Indexed"],
        ));
    }

    if is_indexed(spec) {
        return validate_indexed(spec, at, errors);
    }

    if matches!(mode, None | Some("NonIndexed")) {
        for (name, found) in [
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ] {
            if let Some(found) = found {
                let why = "requires indexed completion mode";
                errors.push(FieldError::invalid(&at.field(name), found.to_string(), why));
            }
        }
    }
}

fn validate_indexed(spec: &JobSpec, at: &Path<'_>, errors: &mut Errors) {
    let (parallelism, failed) = (spec.parallelism, spec.max_failed_indexes);

    if spec.completions.is_none() {
        errors.push(FieldError::required(
            &at.field("completions"),
            "when completion mode is Indexed",
        ));
    }

    let at_most = |name: &str, found: Option<i32>, most: i32, why: String, errors: &mut Errors| {
        if let Some(found) = found.filter(|found| *found > most) {
            errors.push(FieldError::invalid(&at.field(name), found.to_string(), why));
        }
    };

    let why =
        format!("must be less than or equal to {MOST_AT_ONCE} when completion mode is Indexed");
    at_most("parallelism", parallelism, MOST_AT_ONCE, why, errors);
    let completions = spec.completions.unwrap_or(i32::MAX);
    let why = "must be less than or equal to completions".to_owned();
    at_most("maxFailedIndexes", failed, completions, why, errors);
    let why = format!("must be less than or equal to {MOST_FAILED}");
    at_most("maxFailedIndexes", failed, MOST_FAILED, why, errors);

    if spec
        .completions
        .is_none_or(|completions| completions <= MANY)
        || spec.backoff_limit_per_index.is_none()
    {
        return;
    }

    if failed.is_none() {
        let why = format!("must be specified when completions is above {MANY}");
        errors.push(FieldError::required(&at.field("maxFailedIndexes"), why));
    }

    for (name, found) in [("parallelism", parallelism), ("maxFailedIndexes", failed)] {
        let why = format!(
            "must be less than or equal to {MOST_WITH_MANY} when completions are above {MANY} and used with backoff limit per index"
        );
        at_most(name, found, MOST_WITH_MANY, why, errors);
    }
}

fn validate_replacement(spec: &JobSpec, at: &Path<'_>, errors: &mut Errors) {
    let Some(policy) = &spec.pod_replacement_policy else {
        return;
    };
    let known: &[&str] = if spec.pod_failure_policy.is_some() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    if !known.contains(&policy.as_str()) {
        errors.push(FieldError::not_supported(at, policy, known));
    }
}

fn validate_restarts(spec: &JobSpec, at: &Path<'_>, errors: &mut Errors) {
    let place = at.field("restartPolicy");
    let policy = spec
        .template
        .spec
        .as_ref()
        .map(|pod| text(&pod.restart_policy))
        .unwrap_or_default();

    match policy {
        "" | "Always" => {
            errors.push(FieldError::required(
                &place,
                "valid values: \"OnFailure\", \"Never\"",
            ));
        }
        "OnFailure" if spec.pod_failure_policy.is_some() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid_str(&place, policy, why));
        }
        "OnFailure" | "Never" => {}
        other => errors.push(FieldError::not_supported(
            &place,
            other,
            &["OnFailure", "Never"],
        )),
    }
}

/// Warnings about a job.
pub(in crate::batch) fn warnings(spec: &JobSpec, at: &Path<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let many = spec.completions.unwrap_or_default() > MANY
        && spec.parallelism.unwrap_or_default() > MOST_WITH_MANY;
    if is_indexed(spec) && many {
        warnings.push(format!(
            "{at}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }

    warnings.extend(pod::template_warnings(
        &spec.template,
        &at.field("template"),
    ));

    warnings
}
