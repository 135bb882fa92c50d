//! Scheduling gates and readiness gates.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::names::qualified_name;
use k8s_openapi::api::core::v1::{PodReadinessGate, PodSchedulingGate};

use crate::strategy::Errors;

pub(super) fn validate_readiness_gates(
    gates: &[PodReadinessGate],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (index, gate) in gates.iter().enumerate() {
        let condition = &gate.condition_type;
        refuse(
            &at.index(index).field("conditionType"),
            condition,
            qualified_name(condition),
            errors,
        );
    }
}

pub(super) fn validate_scheduling_gates(
    gates: &[PodSchedulingGate],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (index, gate) in gates.iter().enumerate() {
        let at = at.index(index);
        refuse(&at, &gate.name, qualified_name(&gate.name), errors);
        if !seen.insert(&gate.name) {
            errors.push(FieldError::duplicate(&at, Quoted(&gate.name).to_string()));
        }
    }
}
