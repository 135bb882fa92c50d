//! What may change in a pod: images, its deadline, further tolerations, fewer gates; and, while it
//! is gated, where it may be scheduled.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{
    Affinity, Container, NodeAffinity, NodeSelectorTerm, PodSpec, Toleration,
};

use super::difference::difference;
use super::options::Options;
use super::validate::tolerations;
use super::{internal, same};
use crate::strategy::{Errors, SPEC};
use crate::validate::internal::list;
use crate::validate::{items, text};

const UPDATABLE: &str = "pod updates may not change fields other than \
     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates the change of a spec that has been validated by itself.
pub(super) fn validate_update(
    new: &PodSpec,
    old: &PodSpec,
    options: &Options,
    errors: &mut Errors,
) {
    let lists = [
        (&new.containers[..], &old.containers[..], "containers"),
        (
            items(&new.init_containers),
            items(&old.init_containers),
            "initContainers",
        ),
    ];

    for (new, old, name) in lists {
        if !validate_images(new, old, &SPEC.field(name), errors) {
            return;
        }
    }

    if !validate_deadline(
        new.active_deadline_seconds,
        old.active_deadline_seconds,
        errors,
    ) {
        return;
    }

    validate_tolerations(
        items(&new.tolerations),
        items(&old.tolerations),
        options,
        errors,
    );

    validate_gates(new, old, errors);
    let mut rest = new.clone();
    same::align(&mut rest, old);

    if rest == *old {
        return;
    }

    forget_updatable(&mut rest, old);

    if !items(&old.scheduling_gates).is_empty() {
        validate_gated(&mut rest, old, errors);
    }

    if rest != *old {
        errors.push(FieldError::forbidden(
            &SPEC,
            format!("{UPDATABLE}\n{}", difference(old, &rest)),
        ));
    }
}

/// Validates the images of containers whose number is unchanged. Returns whether to continue.
fn validate_images(
    new: &[Container],
    old: &[Container],
    at: &Path<'_>,
    errors: &mut Errors,
) -> bool {
    if new.len() != old.len() {
        errors.push(FieldError::forbidden(
            at,
            "pod updates may not add or remove containers",
        ));
        return false;
    }

    for (index, container) in new.iter().enumerate() {
        let (image, place) = (text(&container.image), at.index(index));
        if image.is_empty() {
            errors.push(FieldError::required(&place.field("image"), ""));
        }

        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid_str(
                &place.field("image"),
                image,
                detail,
            ));
        }
    }

    true
}

/// Validates a deadline, which can be set and shortened. Returns whether to continue.
fn validate_deadline(new: Option<i64>, old: Option<i64>, errors: &mut Errors) -> bool {
    let at = SPEC.field("activeDeadlineSeconds");
    let before = errors.len();

    match (new, old) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
            errors.push(FieldError::invalid(&at, new.to_string(), detail));
        }
        (Some(new), Some(old)) if new > old => {
            let detail = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(&at, new.to_string(), detail));
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&at, "null".to_owned(), detail));
            return true;
        }
        _ => {}
    }

    errors.len() == before
}

/// Validates tolerations: old ones are kept, except for their `tolerationSeconds`.
fn validate_tolerations(
    new: &[Toleration],
    old: &[Toleration],
    options: &Options,
    errors: &mut Errors,
) {
    let at = SPEC.field("tolerations");
    let parts = |toleration: &Toleration| {
        let Toleration {
            key,
            operator,
            value,
            effect,
            ..
        } = toleration;
        [key, operator, value, effect].map(Clone::clone)
    };

    let known: BTreeSet<[Option<String>; 4]> = new.iter().map(parts).collect();
    if !old.iter().all(|old| known.contains(&parts(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&at, detail));
        return;
    }

    tolerations::validate_tolerations(new, &at, options, errors);
}

fn validate_gates(new: &PodSpec, old: &PodSpec, errors: &mut Errors) {
    let at = SPEC.field("schedulingGates");
    let before: BTreeSet<&str> = items(&old.scheduling_gates)
        .iter()
        .map(|gate| gate.name.as_str())
        .collect();

    for (index, gate) in items(&new.scheduling_gates).iter().enumerate() {
        if !before.contains(gate.name.as_str()) {
            let detail = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                gate.name
            );
            errors.push(FieldError::forbidden(
                &at.index(index).field("name"),
                detail,
            ));
        }
    }
}

/// Restores the mutable fields, so that the rest can be compared.
fn forget_updatable(rest: &mut PodSpec, old: &PodSpec) {
    for (container, old) in rest.containers.iter_mut().zip(&old.containers) {
        container.image.clone_from(&old.image);
    }

    for (container, old) in rest
        .init_containers
        .iter_mut()
        .flatten()
        .zip(items(&old.init_containers))
    {
        container.image.clone_from(&old.image);
    }

    rest.active_deadline_seconds = old.active_deadline_seconds;
    rest.scheduling_gates.clone_from(&old.scheduling_gates);
    rest.tolerations.clone_from(&old.tolerations);

    if old
        .termination_grace_period_seconds
        .is_some_and(|seconds| seconds < 0)
        && rest.termination_grace_period_seconds == Some(1)
    {
        rest.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
}

/// Validates the scheduling fields of a gated pod, which can become more restrictive.
fn validate_gated(rest: &mut PodSpec, old: &PodSpec, errors: &mut Errors) {
    if rest.node_selector != old.node_selector {
        let new = rest.node_selector.clone().unwrap_or_default();
        if old
            .node_selector
            .iter()
            .flatten()
            .any(|(key, value)| new.get(key) != Some(value))
        {
            let detail =
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            let shown = rest
                .node_selector
                .as_ref()
                .map_or_else(|| "null".to_owned(), internal::shown);

            errors.push(FieldError::invalid(
                &SPEC.field("nodeSelector"),
                shown,
                detail,
            ));
        }

        rest.node_selector.clone_from(&old.node_selector);
    }

    let node_affinity =
        |affinity: &Option<Affinity>| affinity.as_ref().and_then(|it| it.node_affinity.clone());
    let (new_nodes, old_nodes) = (node_affinity(&rest.affinity), node_affinity(&old.affinity));
    if new_nodes == old_nodes {
        return;
    }

    validate_narrower(new_nodes.as_ref(), old_nodes.as_ref(), errors);

    let put_back = Affinity {
        node_affinity: old_nodes,
        ..rest.affinity.take().unwrap_or_default()
    };
    let nothing_else = put_back == Affinity::default();
    rest.affinity = (old.affinity.is_some() || !nothing_else).then_some(put_back);
}

fn validate_narrower(new: Option<&NodeAffinity>, old: Option<&NodeAffinity>, errors: &mut Errors) {
    let terms = |affinity: Option<&NodeAffinity>| -> Option<Vec<NodeSelectorTerm>> {
        let required = affinity?
            .required_during_scheduling_ignored_during_execution
            .as_ref()?;
        Some(required.node_selector_terms.clone())
    };
    let Some(old) = terms(old) else { return };

    let given = terms(new);
    let new = given.as_deref().unwrap_or_default();
    let at = SPEC.field("affinity");
    let at = at.field("nodeAffinity");
    let at = at.field("requiredDuringSchedulingIgnoredDuringExecution");

    let at = at.field("nodeSelectorTerms");
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = match &given {
            None => "null".to_owned(),
            Some(terms) => list(terms.iter().map(internal::node_selector_term)),
        };
        errors.push(FieldError::invalid(&at, shown, detail));
        return;
    }

    for (index, (new, old)) in new.iter().zip(&old).enumerate() {
        if !only_adds(new, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(
                &at.index(index),
                internal::node_selector_term(new),
                detail,
            ));
        }
    }
}

/// Whether a term keeps its requirements, in the same positions. An empty one matches nothing and
/// must stay empty.
fn only_adds(new: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let lists = [
        (items(&new.match_expressions), items(&old.match_expressions)),
        (items(&new.match_fields), items(&old.match_fields)),
    ];
    if lists.iter().all(|(_, old)| old.is_empty()) {
        return lists.iter().all(|(new, _)| new.is_empty());
    }
    lists.iter().all(|(new, old)| new.starts_with(old))
}
