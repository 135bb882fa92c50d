//! Startup, liveness and readiness probes.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::Probe;

use super::lifecycle::{Handler, validate_lifecycle_handler};
use crate::strategy::Errors;
use crate::validate::validate_not_negative;

/// Validates a liveness or startup probe.
pub(super) fn validate_liveness(probe: Option<&Probe>, at: &Path<'_>, errors: &mut Errors) {
    let Some(probe) = probe else { return };
    validate_probe(probe, at, errors);
    let successes = probe.success_threshold.unwrap_or(0);
    if successes != 1 {
        errors.push(FieldError::invalid(
            &at.field("successThreshold"),
            successes.to_string(),
            "must be 1",
        ));
    }
}

pub(super) fn validate_readiness(probe: Option<&Probe>, at: &Path<'_>, errors: &mut Errors) {
    let Some(probe) = probe else { return };
    validate_probe(probe, at, errors);
    if let Some(seconds) = probe.termination_grace_period_seconds {
        let detail = "must not be set for readinessProbes";
        let place = at.field("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&place, seconds.to_string(), detail));
    }
}

fn validate_probe(probe: &Probe, at: &Path<'_>, errors: &mut Errors) {
    validate_lifecycle_handler(&Handler::of_probe(probe), None, at, errors);

    for (found, name) in [
        (probe.initial_delay_seconds, "initialDelaySeconds"),
        (probe.timeout_seconds, "timeoutSeconds"),
        (probe.period_seconds, "periodSeconds"),
        (probe.success_threshold, "successThreshold"),
        (probe.failure_threshold, "failureThreshold"),
    ] {
        validate_not_negative(found.unwrap_or(0).into(), &at.field(name), errors);
    }

    if let Some(seconds) = probe
        .termination_grace_period_seconds
        .filter(|seconds| *seconds <= 0)
    {
        let place = at.field("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(
            &place,
            seconds.to_string(),
            "must be greater than 0",
        ));
    }
}
