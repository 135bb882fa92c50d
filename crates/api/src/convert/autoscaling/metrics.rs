//! Metrics of v2, which are nested, and of v1, which are flat: the same values at different paths.

use crate::quantity::Quantity;
use crate::{Map, Text, Value};

/// A source of metrics, and its values.
type Source = (&'static str, Paths);
/// For each value its path in v2 and its name in v1.
type Paths = &'static [(&'static [&'static str], &'static str)];

const SPECS: [Source; 5] = [
    (
        "resource",
        &[
            (&["name"], "name"),
            (
                &["target", "averageUtilization"],
                "targetAverageUtilization",
            ),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            (&["name"], "name"),
            (&["container"], "container"),
            (
                &["target", "averageUtilization"],
                "targetAverageUtilization",
            ),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "pods",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "object",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "averageValue"),
            (&["describedObject"], "target"),
        ],
    ),
    (
        "external",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
];

const STATUSES: [Source; 5] = [
    (
        "resource",
        &[
            (&["name"], "name"),
            (
                &["current", "averageUtilization"],
                "currentAverageUtilization",
            ),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            (&["name"], "name"),
            (&["container"], "container"),
            (
                &["current", "averageUtilization"],
                "currentAverageUtilization",
            ),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "pods",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "object",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "averageValue"),
            (&["describedObject"], "target"),
        ],
    ),
    (
        "external",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
];

pub(super) fn spec_to_v1(metric: Value) -> Value {
    to_v1(metric, &SPECS)
}

pub(super) fn status_to_v1(metric: Value) -> Value {
    to_v1(metric, &STATUSES)
}

pub(super) fn spec_to_v2(metric: Value) -> Value {
    to_v2(metric, &SPECS, target)
}

pub(super) fn status_to_v2(metric: Value) -> Value {
    to_v2(metric, &STATUSES, current)
}

/// A v2 status that reports a CPU utilization.
pub(super) fn cpu_status(share: i64) -> Value {
    let mut metric = Map::new();
    metric.insert("type", "Resource");
    let resource = metric.object_mut("resource");
    resource.insert("name", "cpu");
    resource
        .object_mut("current")
        .insert("averageUtilization", share);
    metric.into()
}

fn to_v1(metric: Value, sources: &[Source]) -> Value {
    each_source(metric, sources, |mut grouped, paths, _| {
        let mut flat = Map::new();
        for (steps, name) in paths {
            if let Some(value) = remove_at(&mut grouped, steps) {
                flat.insert(Text::const_new(name), value);
            }
        }
        flat
    })
}

fn to_v2(metric: Value, sources: &[Source], complete: fn(&'static str, &mut Map)) -> Value {
    each_source(metric, sources, |mut flat, paths, source| {
        let mut grouped = Map::new();
        for (steps, name) in paths {
            if let Some(value) = flat.remove(name) {
                insert_at(&mut grouped, steps, value);
            }
        }
        complete(source, &mut grouped);
        grouped
    })
}

fn each_source(
    metric: Value,
    sources: &[Source],
    change: impl Fn(Map, Paths, &'static str) -> Map,
) -> Value {
    let Value::Object(mut metric) = metric else {
        return metric;
    };
    for (source, paths) in sources {
        if let Some(Value::Object(found)) = metric.remove(source) {
            metric.insert(Text::const_new(source), change(found, paths, source));
        }
    }
    metric.into()
}

fn remove_at(map: &mut Map, steps: &[&str]) -> Option<Value> {
    let (last, path) = steps.split_last()?;
    let map = path.iter().try_fold(map, |map, name| map.below_mut(name))?;
    map.remove(last).filter(|value| !value.is_null())
}

fn insert_at(map: &mut Map, steps: &[&'static str], value: Value) {
    let Some((last, path)) = steps.split_last() else {
        return;
    };
    let map = path.iter().fold(map, |map, name| map.object_mut(name));
    map.insert(Text::const_new(last), value);
}

/// The type of a target follows from which values are set; v1 cannot omit all of them.
fn target(source: &'static str, metric: &mut Map) {
    let target = metric.object_mut("target");
    let of_type = match source {
        "resource" | "containerResource" if target.is_set("averageUtilization") => "Utilization",
        "external" if target.is_set("value") => "Value",
        "object" if !target.is_set("averageValue") => {
            target.set_if_nil("value", "0");
            "Value"
        }
        "object" => {
            let is_zero =
                |value: &Value| Quantity::from_value(value).is_ok_and(|amount| amount.is_zero());
            if target.get("value").is_some_and(is_zero) {
                target.remove("value");
            }
            "AverageValue"
        }
        "pods" => {
            target.set_if_nil("averageValue", "0");
            "AverageValue"
        }
        _ => "AverageValue",
    };
    target.insert("type", Text::const_new(of_type));
}

/// v1 cannot omit these.
fn current(source: &'static str, metric: &mut Map) {
    let always = if matches!(source, "object" | "external") {
        "value"
    } else {
        "averageValue"
    };
    metric.object_mut("current").set_if_nil(always, "0");
}
