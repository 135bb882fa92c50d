//! The metrics of an autoscaler.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscalerSpec, MetricIdentifier, MetricSpec, MetricTarget,
};

use super::{ApiVersion, has_bad_reference, validate_reference};
use crate::strategy::Errors;
use crate::validate::items;
use crate::validate::resources::{self, read, shown};

/// The types of metrics with the field that each has, in the order of upstream's list.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

pub(super) fn validate(
    spec: &HorizontalPodAutoscalerSpec,
    old: Option<&HorizontalPodAutoscalerSpec>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let version = if old.is_some_and(has_bad_reference) {
        ApiVersion::Unchecked
    } else {
        ApiVersion::Any
    };

    let metrics = items(&spec.metrics);
    for (index, metric) in metrics.iter().enumerate() {
        validate_metric(metric, version, &at.index(index), errors);
    }

    let from_outside = |metric: &MetricSpec| matches!(metric.type_.as_str(), "Object" | "External");
    if spec.min_replicas == Some(0) && !metrics.iter().any(from_outside) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(at, detail));
    }
}

fn validate_metric(metric: &MetricSpec, version: ApiVersion, at: &Path<'_>, errors: &mut Errors) {
    let unknown = |errors: &mut Errors| {
        let known = SOURCES.map(|(name, _)| name);
        errors.push(FieldError::not_supported(
            &at.field("type"),
            &metric.type_,
            &known,
        ));
    };

    if metric.type_.is_empty() {
        errors.push(FieldError::required(
            &at.field("type"),
            "must specify a metric source type",
        ));
    }

    let own = SOURCES
        .into_iter()
        .find(|(name, _)| *name == metric.type_)
        .map(|(_, field)| field);

    if own.is_none() {
        unknown(errors);
    }

    let present = validate_first_source(metric, version, at, errors);
    match own {
        Some(field) if !present.contains(&field) => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&at.field(field), detail));
        }
        Some(_) => {}
        None => unknown(errors),
    }

    if present.len() != 1 {
        for field in present.into_iter().filter(|field| Some(*field) != own) {
            let detail = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&at.field(field), detail));
        }
    }
}

/// Validates the first source that is set; returns the names of all that are.
fn validate_first_source(
    metric: &MetricSpec,
    version: ApiVersion,
    at: &Path<'_>,
    errors: &mut Errors,
) -> Vec<&'static str> {
    let mut present = Vec::new();
    let mut first = |name: &'static str| {
        present.push(name);
        present.len() == 1
    };

    if let Some(object) = metric.object.as_ref().filter(|_| first("object")) {
        let at = at.field("object");
        validate_reference(
            &object.described_object,
            version,
            &at.field("describedObject"),
            errors,
        );

        validate_identifier(&object.metric, &at.field("metric"), errors);
        let detail = "must set either a target value or averageValue";
        validate_target(
            &object.target,
            TargetRule::ValueOrAverage(detail),
            &at.field("target"),
            errors,
        );
    }

    if let Some(external) = metric.external.as_ref().filter(|_| first("external")) {
        let at = at.field("external");
        validate_identifier(&external.metric, &at.field("metric"), errors);
        let target = at.field("target");

        let detail = "must set either a target value for metric or a per-pod target";
        validate_target(
            &external.target,
            TargetRule::ValueOrAverage(detail),
            &target,
            errors,
        );

        if external.target.value.is_some() && external.target.average_value.is_some() {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&target.field("value"), detail));
        }
    }

    if let Some(pods) = metric.pods.as_ref().filter(|_| first("pods")) {
        let at = at.field("pods");
        validate_identifier(&pods.metric, &at.field("metric"), errors);
        validate_target(
            &pods.target,
            TargetRule::Average,
            &at.field("target"),
            errors,
        );
    }

    if let Some(resource) = metric.resource.as_ref().filter(|_| first("resource")) {
        let at = at.field("resource");
        if resource.name.is_empty() {
            errors.push(FieldError::required(
                &at.field("name"),
                "must specify a resource name",
            ));
        }

        validate_target(
            &resource.target,
            TargetRule::UtilizationOrAverage,
            &at.field("target"),
            errors,
        );
    }

    if let Some(resource) = metric
        .container_resource
        .as_ref()
        .filter(|_| first("containerResource"))
    {
        let at = at.field("containerResource");
        match resource.name.as_str() {
            "" => errors.push(FieldError::required(
                &at.field("name"),
                "must specify a resource name",
            )),
            name => resources::validate_container_resource_name(name, &at.field("name"), errors),
        }

        match resource.container.as_str() {
            "" => errors.push(FieldError::required(
                &at.field("container"),
                "must specify a container",
            )),
            name => refuse(
                &at.field("container"),
                name,
                names::dns1123_label(name),
                errors,
            ),
        }

        validate_target(
            &resource.target,
            TargetRule::UtilizationOrAverage,
            &at.field("target"),
            errors,
        );
    }

    present
}

fn validate_identifier(metric: &MetricIdentifier, at: &Path<'_>, errors: &mut Errors) {
    match metric.name.as_str() {
        "" => errors.push(FieldError::required(
            &at.field("name"),
            "must specify a metric name",
        )),
        name => refuse(
            &at.field("name"),
            name,
            names::path_segment_name(name),
            errors,
        ),
    }
}

/// What the target of a source must have.
#[derive(Clone, Copy)]
enum TargetRule {
    /// A value or an average; the text is the error if there is neither.
    ValueOrAverage(&'static str),
    Average,
    /// A utilization (percentage of the request) or an average, but not both.
    UtilizationOrAverage,
}

fn validate_target(target: &MetricTarget, wants: TargetRule, at: &Path<'_>, errors: &mut Errors) {
    let place = at.field("type");
    if target.type_.is_empty() {
        errors.push(FieldError::required(
            &place,
            "must specify a metric target type",
        ));
    }

    if !matches!(
        target.type_.as_str(),
        "Utilization" | "Value" | "AverageValue"
    ) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid_str(&place, &target.type_, detail));
    }

    for (name, found) in [
        ("value", &target.value),
        ("averageValue", &target.average_value),
    ] {
        if let Some(found) = found.as_ref().map(read).filter(|found| found.signum() != 1) {
            errors.push(FieldError::invalid(
                &at.field(name),
                shown(&found),
                "must be positive",
            ));
        }
    }

    if let Some(found) = target.average_utilization.filter(|found| *found < 1) {
        let at = at.field("averageUtilization");
        errors.push(FieldError::invalid(
            &at,
            found.to_string(),
            "must be greater than 0",
        ));
    }

    let (value, average) = (target.value.is_some(), target.average_value.is_some());
    let utilization = target.average_utilization.is_some();
    match wants {
        TargetRule::ValueOrAverage(detail) if !value && !average => {
            errors.push(FieldError::required(&at.field("averageValue"), detail));
        }
        TargetRule::Average if !average => {
            let detail = "must specify a positive target averageValue";
            errors.push(FieldError::required(&at.field("averageValue"), detail));
        }
        TargetRule::UtilizationOrAverage if !utilization && !average => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(
                &at.field("averageUtilization"),
                detail,
            ));
        }
        TargetRule::UtilizationOrAverage if utilization && average => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&at.field("averageValue"), detail));
        }
        _ => {}
    }
}
