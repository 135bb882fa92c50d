//! `affinity`: to nodes, to pods, and against pods.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, qualified_name};
use coracle_api::selector::{self, Values};
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, PodAffinityTerm, WeightedPodAffinityTerm,
};

use super::{node_selector, spread};
use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::items;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn validate_affinity(
    affinity: Option<&Affinity>,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let Some(affinity) = affinity else { return };
    if let Some(nodes) = &affinity.node_affinity {
        validate_node_affinity(nodes, &at.field("nodeAffinity"), options, errors);
    }

    let values = options.selector_values;
    if let Some(pods) = &affinity.pod_affinity {
        let (required, preferred) = (
            items(&pods.required_during_scheduling_ignored_during_execution),
            items(&pods.preferred_during_scheduling_ignored_during_execution),
        );

        validate_pod_affinity(
            required,
            preferred,
            values,
            &at.field("podAffinity"),
            errors,
        );
    }

    if let Some(pods) = &affinity.pod_anti_affinity {
        let (required, preferred) = (
            items(&pods.required_during_scheduling_ignored_during_execution),
            items(&pods.preferred_during_scheduling_ignored_during_execution),
        );

        validate_pod_affinity(
            required,
            preferred,
            values,
            &at.field("podAntiAffinity"),
            errors,
        );
    }
}

fn validate_node_affinity(
    affinity: &NodeAffinity,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    if let Some(selector) = &affinity.required_during_scheduling_ignored_during_execution {
        node_selector::validate_node_selector(
            selector,
            options.node_affinity_values,
            &at.field(REQUIRED),
            errors,
        );
    }

    let at = at.field(PREFERRED);
    let terms = items(&affinity.preferred_during_scheduling_ignored_during_execution);
    for (index, term) in terms.iter().enumerate() {
        let at = at.index(index);
        validate_weight(term.weight, &at, errors);

        // Invalid label values were always accepted here; they cause a warning.
        node_selector::validate_node_selector_term(
            &term.preference,
            Values::Kept,
            &at.field("preference"),
            errors,
        );
    }
}

fn validate_pod_affinity(
    required: &[PodAffinityTerm],
    preferred: &[WeightedPodAffinityTerm],
    values: Values,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (index, given) in required.iter().enumerate() {
        validate_term(given, values, &at.field(REQUIRED).index(index), errors);
    }

    let at = at.field(PREFERRED);
    for (index, given) in preferred.iter().enumerate() {
        let at = at.index(index);
        validate_weight(given.weight, &at, errors);
        validate_term(
            &given.pod_affinity_term,
            values,
            &at.field("podAffinityTerm"),
            errors,
        );
    }
}

fn validate_weight(weight: i32, at: &Path<'_>, errors: &mut Errors) {
    if !(1..=100).contains(&weight) {
        let detail = "must be in the range 1-100";
        errors.push(FieldError::invalid(
            &at.field("weight"),
            weight.to_string(),
            detail,
        ));
    }
}

fn validate_term(term: &PodAffinityTerm, values: Values, at: &Path<'_>, errors: &mut Errors) {
    selector::validate(
        term.label_selector.as_ref(),
        values,
        &at.field("labelSelector"),
        errors,
    );

    selector::validate(
        term.namespace_selector.as_ref(),
        values,
        &at.field("namespaceSelector"),
        errors,
    );

    for name in items(&term.namespaces) {
        refuse(&at.field("namespace"), name, dns1123_label(name), errors);
    }

    let (matching, mismatching) = (
        items(&term.match_label_keys),
        items(&term.mismatch_label_keys),
    );

    spread::validate_label_keys(
        matching,
        mismatching,
        term.label_selector.as_ref(),
        at,
        errors,
    );

    let place = at.field("topologyKey");
    if term.topology_key.is_empty() {
        errors.push(FieldError::required(&place, "can not be empty"));
    }

    refuse(
        &place,
        &term.topology_key,
        qualified_name(&term.topology_key),
        errors,
    );
}
