//! Selectors of nodes, as node affinity and volumes have them.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_subdomain, label_value, qualified_name};
use coracle_api::selector::Values;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

use crate::strategy::Errors;
use crate::validate::items;

pub(crate) fn validate_node_selector(
    selector: &NodeSelector,
    values: Values,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let at = at.field("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        errors.push(FieldError::required(
            &at,
            "must have at least one node selector term",
        ));
    }
    for (index, given) in selector.node_selector_terms.iter().enumerate() {
        validate_node_selector_term(given, values, &at.index(index), errors);
    }
}

pub(super) fn validate_node_selector_term(
    term: &NodeSelectorTerm,
    values: Values,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (index, requirement) in items(&term.match_expressions).iter().enumerate() {
        validate_expression(
            requirement,
            values,
            &at.field("matchExpressions").index(index),
            errors,
        );
    }
    for (index, requirement) in items(&term.match_fields).iter().enumerate() {
        validate_field(requirement, &at.field("matchFields").index(index), errors);
    }
}

/// Whether some value of an expression is an invalid label value.
pub(in crate::core::pod) fn has_bad_value(terms: &[NodeSelectorTerm]) -> bool {
    let expressions = terms.iter().flat_map(|term| items(&term.match_expressions));
    expressions
        .flat_map(|expression| items(&expression.values))
        .any(|value| !label_value(value).is_empty())
}

fn validate_expression(
    requirement: &NodeSelectorRequirement,
    values: Values,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let given = items(&requirement.values);
    let place = at.field("values");
    match (requirement.operator.as_str(), given.len()) {
        ("In" | "NotIn", 0) => {
            errors.push(FieldError::required(
                &place,
                "must be specified when `operator` is 'In' or 'NotIn'",
            ));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&place, detail));
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&place, detail));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        (other, _) => {
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
        qualified_name(&requirement.key),
        errors,
    );

    if values == Values::Validated {
        for (index, value) in given.iter().enumerate() {
            refuse(&place.index(index), value, label_value(value), errors);
        }
    }
}

fn validate_field(requirement: &NodeSelectorRequirement, at: &Path<'_>, errors: &mut Errors) {
    let given = items(&requirement.values);
    let place = at.field("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if given.len() == 1 => {}
        "In" | "NotIn" => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(&place, detail));
        }
        other => {
            errors.push(FieldError::invalid_str(
                &at.field("operator"),
                other,
                "not a valid selector operator",
            ));
        }
    }

    if requirement.key != "metadata.name" {
        let detail = "not a valid field selector key";
        errors.push(FieldError::invalid_str(
            &at.field("key"),
            &requirement.key,
            detail,
        ));
        return;
    }

    for (index, value) in given.iter().enumerate() {
        refuse(&place.index(index), value, dns1123_subdomain(value), errors);
    }
}
