//! HorizontalPodAutoscalers. The default of v1 is set in conversion, where the metrics in its
//! annotations are known.

use crate::codec::json;
use crate::time::Timestamp;
use crate::{Map, Value};

/// Default target CPU utilization, in percent.
pub(crate) const CPU_UTILIZATION: i64 = 80;

const SCALE_UP: &str = r#"{"policies":[{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}],"selectPolicy":"Max","stabilizationWindowSeconds":0}"#;
/// The stabilization window for scaling down is the controller's default.
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

/// A v2 metric with a target CPU utilization.
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

/// Sets the unset rules for one direction.
fn complete(behavior: &mut Map, direction: &str, defaults: &str) {
    let defaults = json::parse(defaults.as_bytes()).expect("the rules are JSON");
    let rules = behavior.object_mut(direction);
    for (name, value) in defaults.as_object().into_iter().flat_map(Map::iter) {
        if !rules.is_set(name) {
            rules.insert(name, value.clone());
        }
    }
}
