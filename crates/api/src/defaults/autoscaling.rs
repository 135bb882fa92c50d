//! Autoscalers. Version 1 has its default in conversion, where the metrics in its annotations are
//! known.

use crate::codec::json;
use crate::time::Timestamp;
use crate::{Map, Value};

/// Four fifths of what the pods ask for.
pub(crate) const CPU_UTILIZATION: i64 = 80;

const SCALE_UP: &str = r#"{"policies":[{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}],"selectPolicy":"Max","stabilizationWindowSeconds":0}"#;
/// How long to wait before scaling down is the controller's to say.
const SCALE_DOWN: &str =
    r#"{"policies":[{"type":"Percent","value":100,"periodSeconds":15}],"selectPolicy":"Max"}"#;

pub(super) fn horizontal_pod_autoscaler(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    if spec.items("metrics").is_empty() {
        spec.insert("metrics", vec![cpu_metric(CPU_UTILIZATION)]);
    }
    if let Some(behavior) = spec.below_mut("behavior") {
        complete(behavior, "scaleUp", SCALE_UP);
        complete(behavior, "scaleDown", SCALE_DOWN);
    }
}

/// A metric of version 2 that asks for a share of the CPU.
pub(crate) fn cpu_metric(utilization: i64) -> Value {
    let mut metric = Map::new();
    metric.insert("type", "Resource");
    let resource = metric.object_mut("resource");
    resource.insert("name", "cpu");
    let target = resource.object_mut("target");
    target.insert("type", "Utilization");
    target.insert("averageUtilization", utilization);
    metric.into()
}

/// Fills the rules for one direction in, each where it is unset.
fn complete(behavior: &mut Map, direction: &str, defaults: &str) {
    let defaults = json::parse(defaults.as_bytes()).expect("the rules are JSON");
    let rules = behavior.object_mut(direction);
    for (name, value) in defaults.as_object().into_iter().flat_map(Map::iter) {
        if !rules.is_set(name) {
            rules.insert(name, value.clone());
        }
    }
}
