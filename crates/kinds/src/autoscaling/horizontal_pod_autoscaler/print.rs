//! The row of a HorizontalPodAutoscaler: of every version, because all are stored as v2.

use coracle_api::time::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus,
};

use crate::print::Row;
use crate::print::cells::{NONE, UNKNOWN, UNSET, age, few, name, quantity};

/// The most metrics that are printed.
const FEW: usize = 2;

pub(super) fn print_row(autoscaler: &HorizontalPodAutoscaler, now: Timestamp) -> Row {
    let spec = &autoscaler.spec;
    let status = autoscaler.status.as_ref();
    let metrics = spec.metrics.as_deref().unwrap_or_default();
    let current = status
        .and_then(|status| status.current_metrics.as_deref())
        .unwrap_or_default();

    row![
        name(&autoscaler.metadata),
        format!(
            "{}/{}",
            spec.scale_target_ref.kind, spec.scale_target_ref.name
        ),
        targets(metrics, current),
        spec.min_replicas
            .map_or_else(|| UNSET.to_string(), |minimum| minimum.to_string()),
        spec.max_replicas,
        status
            .and_then(|status| status.current_replicas)
            .unwrap_or_default(),
        age(&autoscaler.metadata, now)
    ]
}

fn targets(metrics: &[MetricSpec], current: &[MetricStatus]) -> String {
    if metrics.is_empty() {
        return NONE.to_string();
    }
    let shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(place, metric)| target(metric, current.get(place)))
        .collect();
    few(&shown, ", ", FEW)
}

/// The current value and the target.
fn target(metric: &MetricSpec, status: Option<&MetricStatus>) -> String {
    match metric.type_.as_str() {
        "External" => {
            let current = status
                .and_then(|status| status.external.as_ref())
                .map(|found| &found.current);
            metric.external.as_ref().map_or_else(unknown_type, |found| {
                value_or_average(&found.target, current)
            })
        }
        "Object" => {
            let current = status
                .and_then(|status| status.object.as_ref())
                .map(|found| &found.current);
            metric.object.as_ref().map_or_else(unknown_type, |found| {
                value_or_average(&found.target, current)
            })
        }
        "Pods" => {
            let current = status
                .and_then(|status| status.pods.as_ref())
                .map(|found| &found.current);
            metric
                .pods
                .as_ref()
                .map_or_else(unknown_type, |found| average(&found.target, current))
        }
        "Resource" => {
            let current = status
                .and_then(|status| status.resource.as_ref())
                .map(|found| &found.current);
            let named = metric.resource.as_ref();
            named.map_or_else(unknown_type, |found| {
                resource(&found.name, &found.target, current)
            })
        }
        "ContainerResource" => {
            let current = status.and_then(|status| status.container_resource.as_ref());
            let named = metric.container_resource.as_ref();
            named.map_or_else(unknown_type, |found| {
                resource(
                    &found.name,
                    &found.target,
                    current.map(|found| &found.current),
                )
            })
        }
        _ => unknown_type(),
    }
}

fn unknown_type() -> String {
    "<unknown type>".to_string()
}

fn value_or_average(target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    if let Some(wanted) = &target.average_value {
        let current = current.and_then(|current| current.average_value.as_ref());
        let current =
            current.map_or_else(|| UNKNOWN.to_string(), |current| quantity(Some(current)));
        return format!("{current}/{} (avg)", quantity(Some(wanted)));
    }
    let current = current.map_or_else(
        || UNKNOWN.to_string(),
        |current| or_nil(current.value.as_ref()),
    );
    format!("{current}/{}", or_nil(target.value.as_ref()))
}

fn average(target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    let current = current.map_or_else(
        || UNKNOWN.to_string(),
        |current| or_nil(current.average_value.as_ref()),
    );
    format!("{current}/{}", or_nil(target.average_value.as_ref()))
}

fn resource(name: &str, target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    if target.average_value.is_some() {
        return format!("{name}: {}", average(target, current));
    }
    let percent = |utilization: i32| format!("{utilization}%");
    let current = current.and_then(|current| current.average_utilization);
    let current = current.map_or_else(|| UNKNOWN.to_string(), percent);
    let wanted = target
        .average_utilization
        .map_or_else(|| "<auto>".to_string(), percent);
    format!("{name}: {current}/{wanted}")
}

/// What upstream prints for a quantity that is not there.
fn or_nil(value: Option<&k8s_openapi::apimachinery::pkg::api::resource::Quantity>) -> String {
    value.map_or_else(|| "<nil>".to_string(), |value| quantity(Some(value)))
}
