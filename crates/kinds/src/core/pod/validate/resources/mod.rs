//! Requests and limits of a container and of a pod, and the overhead of a pod.

mod of_pod;

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::quantity::Quantity;
use coracle_api::resource_name::{huge_page_size, is_huge_page, may_be_overcommitted};
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use super::{Frame, claims};
use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::items;
use crate::validate::resources::{self, read};
pub(super) use of_pod::validate_pod_resources;

/// Amounts by the name of the resource.
pub(in crate::core::pod) type Amounts = BTreeMap<String, Text>;

/// Validates the name of a resource.
type Name = fn(&str, &Path<'_>, &mut Errors);

pub(super) fn validate_container_resources(
    requirements: &ResourceRequirements,
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_requirements(
        requirements,
        resources::validate_container_resource_name,
        &frame.claims,
        at,
        frame.options,
        errors,
    );
}

/// Validates the overhead of a pod.
pub(crate) fn validate_overhead(
    overhead: &Amounts,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let as_limits = ResourceRequirements {
        limits: Some(overhead.clone()),
        ..ResourceRequirements::default()
    };

    validate_requirements(
        &as_limits,
        resources::validate_container_resource_name,
        &BTreeSet::new(),
        at,
        options,
        errors,
    );
}

/// Whether some amount of huge pages is not a multiple of the page size.
pub(in crate::core::pod) fn has_broken_pages(amounts: Option<&Amounts>) -> bool {
    amounts
        .into_iter()
        .flatten()
        .any(|(name, text)| is_huge_page(name) && !are_whole_pages(name, &read(text)))
}

fn validate_requirements(
    requirements: &ResourceRequirements,
    validate_name: Name,
    claims: &BTreeSet<&str>,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let none = Amounts::new();
    let limits = requirements.limits.as_ref().unwrap_or(&none);
    let requests = requirements.requests.as_ref().unwrap_or(&none);

    let (limits_at, requests_at) = (at.field("limits"), at.field("requests"));
    for (name, text) in limits {
        let place = limits_at.key(name);
        validate_name(name, &place, errors);
        resources::validate_resource_amount(name, text, &place, errors);
        validate_pages(name, &read(text), &place, options, errors);
    }

    for (name, text) in requests {
        let place = requests_at.key(name);
        validate_name(name, &place, errors);
        resources::validate_resource_amount(name, text, &place, errors);

        match limits.get(name) {
            Some(limit) => validate_within(name, &read(text), &read(limit), &requests_at, errors),
            None if may_be_overcommitted(name) => {}
            None => {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&limits_at, detail));
            }
        }

        validate_pages(name, &read(text), &place, options, errors);
    }

    let named = |matches: fn(&str) -> bool| {
        limits
            .keys()
            .chain(requests.keys())
            .any(|name| matches(name))
    };

    if named(is_huge_page) && !named(|name| matches!(name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(at, "HugePages require cpu or memory"));
    }

    claims::validate_claims_are_used(
        items(&requirements.claims),
        claims,
        &at.field("claims"),
        errors,
    );
}

fn validate_within(
    name: &str,
    request: &Quantity,
    limit: &Quantity,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let relation = if request != limit && !may_be_overcommitted(name) {
        "equal to"
    } else if request > limit {
        "less than or equal to"
    } else {
        return;
    };

    let shown = Quoted(&request.to_string()).to_string();
    errors.push(FieldError::invalid(
        at,
        shown,
        format!("must be {relation} {name} limit of {limit}"),
    ));
}

fn validate_pages(
    name: &str,
    amount: &Quantity,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    if is_huge_page(name) && !options.any_pages && !are_whole_pages(name, amount) {
        let detail = format!("{amount} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid_str(at, &amount.to_string(), detail));
    }
}

fn are_whole_pages(name: &str, amount: &Quantity) -> bool {
    let size = huge_page_size(name).and_then(|size| size.parse::<Quantity>().ok());
    size.is_some_and(|size| {
        size.signum() > 0 && size.milli_value() % 1000 == 0 && amount.value() % size.value() == 0
    })
}
