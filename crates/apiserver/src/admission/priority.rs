//! Priority: resolves a pod's priority class to its value, and allows one global default class at
//! most.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::{Map, Value};
use coracle_kinds::builtin;
use coracle_kinds::{Cluster, Part};

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct Priority;

#[async_trait]
impl Plugin for Priority {
    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.cx.part != Part::Main || !attributes.is_of("", "pods") {
            return Ok(());
        }

        match (attributes.operation, attributes.old) {
            (Operation::Create, _) => {
                let class = class(pod, attributes)?;
                settle(pod, class.as_deref()).map_err(|why| attributes.forbidden(pod, &why))
            }
            (Operation::Update, Some(old)) => {
                keep(pod, old);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(class) = object.filter(|_| {
            attributes.cx.part == Part::Main
                && attributes.is_of("scheduling.k8s.io", "priorityclasses")
        }) else {
            return Ok(());
        };

        let Some(default) = default_class(attributes.cx.cluster).filter(|_| is_default(class))
        else {
            return Ok(());
        };

        let other = default.meta().name();
        if attributes.operation == Operation::Update && other == class.meta().name() {
            return Ok(());
        }

        let why = format!(
            "PriorityClass {other} is already marked as default. Only one default can exist"
        );

        Err(attributes.forbidden(class, &why))
    }
}

/// The class that a pod names; the global default, where it names none and there is one.
fn class(pod: &Value, attributes: &Attributes<'_>) -> Result<Option<Arc<Value>>, ApiError> {
    let named = pod
        .at(&["spec", "priorityClassName"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    if named.is_empty() {
        return Ok(default_class(attributes.cx.cluster));
    }

    match attributes.lookup(builtin("scheduling.k8s.io", "v1", "priorityclasses"), named) {
        Some(class) => Ok(Some(class)),
        None => {
            let why = format!("no PriorityClass with name {named} was found");
            Err(attributes.forbidden(pod, &why))
        }
    }
}

/// Of several defaults, which only a race can make, the lowest counts.
fn default_class(cluster: &dyn Cluster) -> Option<Arc<Value>> {
    let classes = cluster.list(builtin("scheduling.k8s.io", "v1", "priorityclasses"), "");
    classes
        .into_iter()
        .filter(|class| is_default(class))
        .min_by_key(|class| value(class))
}

fn is_default(class: &Value) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

fn value(class: &Value) -> i64 {
    class
        .get("value")
        .and_then(Value::as_int)
        .unwrap_or_default()
}

/// Sets the priority and preemption policy of the class in a new pod, unless the pod sets other
/// ones.
fn settle(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let Some(spec) = pod.as_object_mut().map(|pod| pod.object_mut("spec")) else {
        return Ok(());
    };
    if let Some(class) = class {
        spec.insert("priorityClassName", class.meta().name());
    }

    let priority = class.map(value).unwrap_or_default();
    if let Some(given) = spec
        .get("priority")
        .and_then(Value::as_int)
        .filter(|given| *given != priority)
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        ));
    }

    spec.insert("priority", priority);

    let policy = match class {
        None => Some("PreemptLowerPriority"),
        Some(class) => class.get("preemptionPolicy").and_then(Value::as_str),
    };

    let Some(policy) = policy else { return Ok(()) };
    if let Some(given) = spec
        .str("preemptionPolicy")
        .filter(|given| *given != policy)
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }

    spec.insert("preemptionPolicy", policy);

    Ok(())
}

/// An update that omits what this plugin has set keeps it.
fn keep(pod: &mut Value, old: &Value) {
    let Some(before) = old.get("spec").and_then(Value::as_object) else {
        return;
    };

    let Some(spec) = pod.as_object_mut().map(|pod| pod.object_mut("spec")) else {
        return;
    };
    for name in ["priority", "preemptionPolicy"] {
        let is_missing = |spec: &Map| spec.get(name).is_none_or(Value::is_null);
        if let Some(value) = before.get(name).filter(|_| is_missing(spec)) {
            spec.insert(name, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn a_pod_has_the_priority_of_its_class_and_no_other() {
        let check = |spec: &str, class: Option<&str>, expected: Result<&str, &str>| {
            let mut pod = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            let class = class.map(|class| json::parse(class.as_bytes()).unwrap());

            let outcome = settle(&mut pod, class.as_ref());
            match expected {
                Ok(expected) => {
                    outcome.unwrap();
                    assert_eq!(json::to_string(pod.get("spec").unwrap()), expected);
                }
                Err(why) => assert!(outcome.unwrap_err().starts_with(why)),
            }
        };

        let high = r#"{"metadata":{"name":"high"},"value":9,"preemptionPolicy":"Never"}"#;
        check(
            "{}",
            None,
            Ok(r#"{"preemptionPolicy":"PreemptLowerPriority","priority":0}"#),
        );

        check(
            "{}",
            Some(high),
            Ok(r#"{"preemptionPolicy":"Never","priority":9,"priorityClassName":"high"}"#),
        );

        check(
            r#"{"priority":9}"#,
            None,
            Err("the integer value of priority (9) must not be provided"),
        );

        check(
            r#"{"preemptionPolicy":"PreemptLowerPriority"}"#,
            Some(high),
            Err("the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided"),
        );
    }
}
