//! HorizontalPodAutoscalers: v1 has a single target, CPU utilization. The rest of v2 is stored in
//! annotations of v1, and restored from them.

mod annotations;
mod metrics;

use self::annotations::{BEHAVIOR, CONDITIONS, CURRENT_METRICS, METRICS};
use super::ConvertError;
use crate::defaults::autoscaling::{CPU_UTILIZATION, cpu_metric};
use crate::{Map, Text, Value};

/// The annotations of v1 have no meaning in v2.
pub(super) fn normalize(object: &mut Map) -> Result<(), ConvertError> {
    annotations::take_all(object);
    Ok(())
}

pub(super) fn v2_to_v1(object: &mut Map) {
    annotations::take_all(object);
    let mut written: Vec<(&'static str, String)> = Vec::new();
    if let Some(spec) = object.below_mut("spec") {
        let metrics = take_items(spec, "metrics");
        if let Some(share) = metrics
            .iter()
            .find_map(|metric| cpu_share(metric, "target"))
        {
            spec.insert("targetCPUUtilizationPercentage", share);
        }

        let beyond = metrics
            .into_iter()
            .filter(|metric| cpu_share(metric, "target").is_none());

        let beyond: Vec<Value> = beyond.map(metrics::spec_to_v1).collect();
        if !beyond.is_empty() {
            written.push((METRICS, annotations::write_metrics(beyond)));
        }
        if let Some(Value::Object(behavior)) = spec.remove("behavior") {
            written.push((BEHAVIOR, annotations::write_behavior(&behavior)));
        }
    }

    if let Some(status) = object.below_mut("status") {
        let metrics = take_items(status, "currentMetrics");
        if let Some(share) = metrics
            .iter()
            .rev()
            .find_map(|metric| cpu_share(metric, "current"))
        {
            status.insert("currentCPUUtilizationPercentage", share);
        }

        if !metrics.is_empty() {
            let metrics = metrics.into_iter().map(metrics::status_to_v1).collect();
            written.push((CURRENT_METRICS, annotations::write_statuses(metrics)));
        }

        let conditions = take_items(status, "conditions");
        if !conditions.is_empty() {
            written.push((CONDITIONS, annotations::write_conditions(conditions)));
        }
    }

    if !written.is_empty() {
        let annotations = object.object_mut("metadata").object_mut("annotations");
        for (name, text) in written {
            annotations.insert(Text::const_new(name), Value::string(text));
        }
    }
}

pub(super) fn v1_to_v2(object: &mut Map) {
    let found = annotations::take_all(object);
    let spec = object.object_mut("spec");
    let mut metrics = found
        .metrics
        .map(|metrics| metrics.into_iter().map(metrics::spec_to_v2).collect());
    if let Some(Value::Int(share)) = spec.remove("targetCPUUtilizationPercentage") {
        metrics.get_or_insert_with(Vec::new).push(cpu_metric(share));
    }

    let metrics: Vec<Value> = metrics.unwrap_or_default();

    // v1 without any target means the default CPU utilization.
    let metrics = if metrics.is_empty() {
        vec![cpu_metric(CPU_UTILIZATION)]
    } else {
        metrics
    };
    spec.insert("metrics", metrics);

    if let Some(behavior) = found.behavior {
        spec.insert("behavior", behavior);
    }

    let status = object.object_mut("status");
    let share = status.remove("currentCPUUtilizationPercentage");

    // The annotation has more than the utilization alone.
    if let Some(metrics) = found.current_metrics {
        let metrics: Vec<Value> = metrics.into_iter().map(metrics::status_to_v2).collect();
        status.insert("currentMetrics", metrics);
    } else if let Some(Value::Int(share)) = share {
        status.insert("currentMetrics", vec![metrics::cpu_status(share)]);
    }

    if let Some(conditions) = found.conditions {
        status.insert("conditions", conditions);
    }
}

fn take_items(of: &mut Map, name: &str) -> Vec<Value> {
    match of.remove(name) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The CPU utilization that a metric requests or reports: the only one v1 has a field for.
fn cpu_share(metric: &Value, amount: &str) -> Option<i64> {
    let metric = metric.as_object()?;
    let resource = metric.below("resource")?;
    let is_cpu = metric.text("type") == "Resource" && resource.text("name") == "cpu";
    if is_cpu {
        resource.below(amount)?.get("averageUtilization")?.as_int()
    } else {
        None
    }
}
