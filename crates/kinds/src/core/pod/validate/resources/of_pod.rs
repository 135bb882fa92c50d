//! `resources` of a pod: the total of its containers.

use std::collections::BTreeMap;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::quantity::Quantity;
use coracle_api::resource_name::is_huge_page;
use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};

use super::super::Frame;
use super::{Amounts, validate_requirements};
use crate::strategy::Errors;
use crate::validate::items;
use crate::validate::resources::{self, read};

pub(in crate::core::pod::validate) fn validate_pod_resources(
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(resources) = &frame.spec.resources else {
        return;
    };

    let at = at.field("resources");
    if frame.os() == Some("windows") {
        errors.push(FieldError::forbidden(
            &at,
            "may not be set for a windows pod",
        ));
        return;
    }

    if resources.claims.is_some() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&at.field("claims"), detail));
    }

    validate_requirements(
        resources,
        validate_name,
        &frame.claims,
        &at,
        frame.options,
        errors,
    );

    validate_totals(frame.spec, resources, &at, errors);
}

/// Validates the name of a pod-level resource.
fn validate_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    let before = errors.len();
    resources::validate_resource_name(name, at, errors);
    if errors.len() == before && !matches!(name, "cpu" | "memory") && !is_huge_page(name) {
        errors.push(FieldError::not_supported(
            at,
            name,
            &["cpu", "hugepages-", "memory"],
        ));
    }
}

/// Validates that the pod-level amounts are not less than those of the containers.
fn validate_totals(
    spec: &PodSpec,
    resources: &ResourceRequirements,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let none = Amounts::new();
    let requests = resources.requests.as_ref().unwrap_or(&none);

    let limits = resources.limits.as_ref().unwrap_or(&none);
    let at_least = |of_pod: &Amounts, name: &str, sum: &Quantity, at: &Path<'_>, what: &str| {
        let found = read(of_pod.get(name)?);
        (*sum > found).then(|| {
            let detail =
                format!("must be greater than or equal to aggregate container {what} of {sum}");
            FieldError::invalid_str(&at.key(name), &found.to_string(), detail)
        })
    };

    for (name, sum) in &total(spec, |resources| resources.requests.as_ref()) {
        errors.extend(at_least(
            requests,
            name,
            sum,
            &at.field("requests"),
            "requests",
        ));
    }

    for (name, sum) in &total(spec, |resources| resources.limits.as_ref()) {
        if is_huge_page(name) {
            errors.extend(at_least(limits, name, sum, &at.field("limits"), "limits"));
        }
    }

    for (index, container) in spec.containers.iter().enumerate() {
        let own = container
            .resources
            .as_ref()
            .and_then(|resources| resources.limits.as_ref());

        for (name, own) in own.into_iter().flatten() {
            let Some(of_pod) = limits.get(name).map(read) else {
                continue;
            };

            let own = read(own);
            if own > of_pod {
                let containers = at.field("containers");
                let container = containers.index(index);
                let place = container.key(name);

                let detail = format!("must be less than or equal to pod limits of {of_pod}");
                errors.push(FieldError::invalid_str(
                    &place.field("limits"),
                    &own.to_string(),
                    detail,
                ));
            }
        }
    }
}

type Totals = BTreeMap<String, Quantity>;

/// The most that the containers of a pod need at once: all regular ones and the sidecars, or one
/// init container with the sidecars that were started before it.
fn total(spec: &PodSpec, of: impl Fn(&ResourceRequirements) -> Option<&Amounts>) -> Totals {
    let amounts = |container: &Container| -> Totals {
        let given = container.resources.as_ref().and_then(&of);
        given
            .into_iter()
            .flatten()
            .map(|(name, text)| (name.clone(), read(text)))
            .collect()
    };

    let mut all = Totals::new();
    for container in &spec.containers {
        add(&mut all, &amounts(container));
    }

    let (mut beside, mut before) = (Totals::new(), Totals::new());
    for container in items(&spec.init_containers) {
        let mut own = amounts(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut all, &own);
            add(&mut beside, &own);
            own.clone_from(&beside);
        } else {
            add(&mut own, &beside);
        }

        raise(&mut before, own);
    }

    raise(&mut all, before);

    all
}

fn add(totals: &mut Totals, more: &Totals) {
    for (name, more) in more {
        match totals.get_mut(name) {
            Some(total) => total.add(more),
            None => drop(totals.insert(name.clone(), more.clone())),
        }
    }
}

fn raise(totals: &mut Totals, others: Totals) {
    for (name, other) in others {
        match totals.get_mut(&name) {
            Some(total) if *total >= other => {}
            _ => drop(totals.insert(name, other)),
        }
    }
}
