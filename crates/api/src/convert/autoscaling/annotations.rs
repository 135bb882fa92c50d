//! Annotations of v1 that hold, as JSON, what only v2 has fields for.
//!
//! They are decoded leniently: unreadable ones are dropped, and names match case-insensitively,
//! because the behaviour is written with the names of upstream's internal type.

use std::sync::LazyLock;

use crate::catalog::{BUILTIN, Node, Shape};
use crate::codec::{canonical, json};
use crate::{Map, Text, Value};

pub(super) const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
pub(super) const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
pub(super) const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
pub(super) const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// No version writes these any more.
const TOLERANCES: [&str; 2] = [
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

static METRIC_SPEC: Type = Type::new(|| node_of("autoscaling.v1.MetricSpec"));
static METRIC_STATUS: Type = Type::new(|| node_of("autoscaling.v1.MetricStatus"));
static CONDITION: Type = Type::new(|| node_of("autoscaling.v1.HorizontalPodAutoscalerCondition"));
static RULES: Type = Type::new(|| node_of("autoscaling.v2.HorizontalPodAutoscalerBehavior"));

type Type = LazyLock<Node<'static>>;

/// The content of the annotations: lists of v1, and the behaviour of v2.
#[derive(Default)]
pub(super) struct Annotations {
    pub(super) metrics: Option<Vec<Value>>,
    pub(super) current_metrics: Option<Vec<Value>>,
    pub(super) conditions: Option<Vec<Value>>,
    pub(super) behavior: Option<Value>,
}

/// Removes all of them from the object and decodes them.
pub(super) fn take_all(object: &mut Map) -> Annotations {
    let annotations = object
        .below_mut("metadata")
        .and_then(|metadata| metadata.below_mut("annotations"));

    let Some(annotations) = annotations else {
        return Annotations::default();
    };
    for name in TOLERANCES {
        annotations.remove(name);
    }

    let mut take = |name: &str| match annotations.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };

    Annotations {
        metrics: take(METRICS).and_then(|text| read_list(&text, *METRIC_SPEC)),
        current_metrics: take(CURRENT_METRICS).and_then(|text| read_list(&text, *METRIC_STATUS)),
        conditions: take(CONDITIONS).and_then(|text| read_list(&text, *CONDITION)),
        behavior: take(BEHAVIOR).and_then(|text| read_behavior(&text)),
    }
}

pub(super) fn write_metrics(metrics: Vec<Value>) -> String {
    write_list(metrics, *METRIC_SPEC)
}

pub(super) fn write_statuses(metrics: Vec<Value>) -> String {
    write_list(metrics, *METRIC_STATUS)
}

pub(super) fn write_conditions(conditions: Vec<Value>) -> String {
    write_list(conditions, *CONDITION)
}

/// The behaviour as upstream's internal type encodes it: with its names, and nothing omitted.
pub(super) fn write_behavior(behavior: &Map) -> String {
    let direction = |name: &str| match behavior.below(name) {
        Some(rules) => write_rules(rules),
        None => "null".to_owned(),
    };
    format!(
        r#"{{"ScaleUp":{},"ScaleDown":{}}}"#,
        direction("scaleUp"),
        direction("scaleDown")
    )
}

fn write_rules(rules: &Map) -> String {
    let shown = |of: &Map, name: &str| {
        of.get(name)
            .map_or_else(|| "null".to_owned(), json::to_string)
    };

    let policy = |policy: &Value| {
        let empty = Map::new();
        let policy = policy.as_object().unwrap_or(&empty);
        let of_type = json::to_string(&Value::string(policy.text("type")));
        let (value, period) = (policy.int("value"), policy.int("periodSeconds"));
        format!(r#"{{"Type":{of_type},"Value":{value},"PeriodSeconds":{period}}}"#)
    };

    let policies = match rules.get("policies") {
        Some(Value::Array(policies)) => {
            format!(
                "[{}]",
                policies.iter().map(policy).collect::<Vec<_>>().join(",")
            )
        }
        _ => "null".to_owned(),
    };

    format!(
        r#"{{"StabilizationWindowSeconds":{},"SelectPolicy":{},"Policies":{policies},"Tolerance":{}}}"#,
        shown(rules, "stabilizationWindowSeconds"),
        shown(rules, "selectPolicy"),
        shown(rules, "tolerance")
    )
}

fn write_list(items: Vec<Value>, node: Node<'_>) -> String {
    let mut out = vec![b'['];
    for (index, mut item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        canonical::canonicalize(&mut item, node);
        json::write_typed(&item, node, &mut out);
    }
    out.push(b']');
    String::from_utf8(out).expect("every piece written is UTF-8")
}

/// `None`: the text is no list of these.
fn read_list(text: &str, node: Node<'static>) -> Option<Vec<Value>> {
    match json::parse(text.as_bytes()).ok()? {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.into_iter().map(|item| read(item, node)).collect(),
        _ => None,
    }
}

fn read_behavior(text: &str) -> Option<Value> {
    let value = json::parse(text.as_bytes())
        .ok()
        .filter(|value| !value.is_null())?;
    let behavior = read(value, *RULES)?;
    let has = |direction: &str| {
        behavior
            .get(direction)
            .is_some_and(|rules| !rules.is_null())
    };
    (has("scaleUp") || has("scaleDown")).then_some(behavior)
}

fn read(mut value: Value, node: Node<'static>) -> Option<Value> {
    match_names(&mut value, node);
    json::decode(&json::to_vec(&value), Some(node))
        .ok()
        .map(|decoded| decoded.value)
}

/// Renames members to the type's field names, which may be written in any case.
fn match_names(value: &mut Value, node: Node<'_>) {
    match (value, node.shape) {
        (Value::Object(map), Shape::Struct(id)) => {
            let of = node.page.struct_of(id);
            let members = std::mem::take(map)
                .into_iter()
                .filter_map(|(name, mut value)| {
                    let mut fields = of.iter();
                    let field = of.field(&name).or_else(|| {
                        fields.find(|field| field.name().eq_ignore_ascii_case(&name))
                    })?;
                    match_names(&mut value, field.node());
                    Some((Text::new(field.name()), value))
                });
            *map = members.collect();
        }
        (Value::Array(items), Shape::List(_)) => {
            if let Some(item) = node.item() {
                items.iter_mut().for_each(|value| match_names(value, item));
            }
        }
        _ => {}
    }
}

fn node_of(type_name: &str) -> Node<'static> {
    BUILTIN
        .type_named(type_name)
        .expect("the type is in the catalogue")
        .node()
}
