//! `topologySpreadConstraints`, and the label keys that selectors of pods take from the pod itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::names::qualified_name;
use coracle_api::selector::{self, Values};
use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::validate_enum;
use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::items;

pub(super) fn validate_spread_constraints(
    constraints: &[TopologySpreadConstraint],
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let pair = |constraint: &'_ TopologySpreadConstraint| {
        (
            constraint.topology_key.clone(),
            constraint.when_unsatisfiable.clone(),
        )
    };

    let last: HashMap<(String, String), usize> = constraints
        .iter()
        .enumerate()
        .map(|(index, constraint)| (pair(constraint), index))
        .collect();

    for (index, constraint) in constraints.iter().enumerate() {
        let at = at.index(index);
        validate_positive(constraint.max_skew, &at.field("maxSkew"), errors);

        if constraint.topology_key.is_empty() {
            errors.push(FieldError::required(
                &at.field("topologyKey"),
                "can not be empty",
            ));
        }

        let action = constraint.when_unsatisfiable.as_str();
        validate_enum(
            action,
            &["DoNotSchedule", "ScheduleAnyway"],
            &at.field("whenUnsatisfiable"),
            errors,
        );

        if last
            .get(&pair(constraint))
            .is_some_and(|last| *last > index)
        {
            let pair = format!("{{{}, {action}}}", constraint.topology_key);
            let place = at.field("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&place, Quoted(&pair).to_string()));
        }

        if let Some(domains) = constraint.min_domains {
            validate_min_domains(domains, action, &at.field("minDomains"), errors);
        }

        for (policy, name) in [
            (&constraint.node_affinity_policy, "nodeAffinityPolicy"),
            (&constraint.node_taints_policy, "nodeTaintsPolicy"),
        ] {
            if let Some(policy) = policy {
                validate_enum(policy, &["Honor", "Ignore"], &at.field(name), errors);
            }
        }

        let (keys, selector) = (
            items(&constraint.match_label_keys),
            constraint.label_selector.as_ref(),
        );

        if options.older_label_keys {
            validate_older_label_keys(keys, selector, &at.field("matchLabelKeys"), errors);
        } else {
            validate_label_keys(keys, &[], selector, &at, errors);
        }

        if !options.any_spread_selector {
            selector::validate(
                selector,
                Values::Validated,
                &at.field("labelSelector"),
                errors,
            );
        }
    }
}

fn validate_positive(found: i32, at: &Path<'_>, errors: &mut Errors) {
    if found <= 0 {
        errors.push(FieldError::invalid(
            at,
            found.to_string(),
            "must be greater than zero",
        ));
    }
}

fn validate_min_domains(domains: i32, action: &str, at: &Path<'_>, errors: &mut Errors) {
    validate_positive(domains, at, errors);
    if action != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(at, domains.to_string(), detail));
    }
}

/// Validates keys whose values are those of the pod's own labels. The selector of a pod has their
/// expressions already.
pub(in crate::core::pod) fn validate_label_keys(
    matching: &[String],
    mismatching: &[String],
    selector: Option<&LabelSelector>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (keys, name) in [
        (matching, "matchLabelKeys"),
        (mismatching, "mismatchLabelKeys"),
    ] {
        let place = at.field(name);
        if !keys.is_empty() && selector.is_none() {
            errors.push(FieldError::forbidden(
                &place,
                "must not be specified when labelSelector is not set",
            ));
            continue;
        }

        for (index, key) in keys.iter().enumerate() {
            refuse(&place.index(index), key, qualified_name(key), errors);
        }
    }

    if let Some(selector) = selector {
        validate_not_selected_twice(matching, selector, at, errors);
    }

    let mismatching: BTreeSet<&String> = mismatching.iter().collect();
    for (index, key) in matching
        .iter()
        .enumerate()
        .filter(|(_, key)| mismatching.contains(key))
    {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid_str(
            &at.field("matchLabelKeys").index(index),
            key,
            detail,
        ));
    }
}

/// Validates that the selector names no key a second time: once is from the pod's own label.
fn validate_not_selected_twice(
    keys: &[String],
    selector: &LabelSelector,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let places: BTreeMap<&String, usize> = keys
        .iter()
        .enumerate()
        .map(|(index, key)| (key, index))
        .collect();

    let mut seen: BTreeSet<&String> = selector
        .match_labels
        .iter()
        .flatten()
        .map(|(key, _)| key)
        .collect();

    for expression in items(&selector.match_expressions) {
        let again = !seen.insert(&expression.key);
        if let Some(index) = places.get(&expression.key).filter(|_| again) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid_str(
                &at.index(*index),
                &expression.key,
                detail,
            ));
        }
    }
}

/// The rule before v1.34, which still applies to pods that only satisfy that.
fn validate_older_label_keys(
    keys: &[String],
    selector: Option<&LabelSelector>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if !keys.is_empty() && selector.is_none() {
        errors.push(FieldError::forbidden(
            at,
            "must not be specified when labelSelector is not set",
        ));
    }

    let labels = selector
        .into_iter()
        .flat_map(|selector| selector.match_labels.iter().flatten());
    let expressions = selector
        .into_iter()
        .flat_map(|selector| items(&selector.match_expressions));
    let selected: BTreeSet<&String> = labels
        .map(|(key, _)| key)
        .chain(expressions.map(|expression| &expression.key))
        .collect();

    for (index, key) in keys.iter().enumerate() {
        refuse(&at.index(index), key, qualified_name(key), errors);
        if selected.contains(key) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid_str(&at.index(index), key, detail));
        }
    }
}
