//! Kinds of `flowcontrol.apiserver.k8s.io`: API priority and fairness.

pub mod defaults;
pub(crate) mod flow_schema;
#[cfg(test)]
mod print_tests;
pub(crate) mod priority_level;

use std::collections::BTreeSet;

use coracle_api::field_error::FieldError;
use coracle_api::{Path, Value};

use crate::strategy::Errors;
use crate::validate::internal;

/// Validates the conditions of a status: their types are unique.
fn validate_conditions(object: &Value, errors: &mut Errors) {
    let at = Path::Root.field("status.conditions");
    let mut types = BTreeSet::new();
    let found = object
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    for (index, condition) in found.iter().enumerate() {
        let at = at.index(index);
        let kind = condition
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();

        if !types.insert(kind) {
            errors.push(FieldError::duplicate(
                &at.field("type"),
                internal::text(kind),
            ));
        }

        if kind.is_empty() {
            errors.push(FieldError::required(&at.field("type"), ""));
        }
    }
}
