//! RuntimeClass: a pod of a class costs what the class costs, and goes where the class goes.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::go_text::Quoted;
use coracle_api::quantity::Quantity;
use coracle_api::{Map, Value};

use super::{Attributes, Operation, Plugin, builtin};
use crate::ApiError;

pub(super) struct RuntimeClass;

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

#[async_trait]
impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.does(Operation::Create, "", "pods") {
            return Ok(());
        }
        let Some(class) = class(pod, attributes)? else { return Ok(()) };
        let Some(spec) = pod.as_object_mut().map(|pod| pod.object_mut("spec")) else { return Ok(()) };
        take_over(spec, &class).map_err(|why| attributes.forbidden(pod, &why))
    }

    async fn validate(&self, pod: Option<&Value>, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(pod) = pod.filter(|_| attributes.does(Operation::Create, "", "pods")) else { return Ok(()) };
        let class = class(pod, attributes)?;
        let own = pod.at(&["spec", "overhead"]).filter(|own| !own.is_null());
        match (class.as_ref().and_then(|class| class.get("overhead")), own) {
            (Some(overhead), own) if !same(overhead.get("podFixed"), own) => {
                Err(attributes.forbidden(pod, OTHER_OVERHEAD))
            }
            (None, Some(_)) => {
                let why =
                    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(attributes.forbidden(pod, why))
            }
            _ => Ok(()),
        }
    }
}

fn class(pod: &Value, attributes: &Attributes<'_>) -> Result<Option<Arc<Value>>, ApiError> {
    let Some(name) = pod.at(&["spec", "runtimeClassName"]).and_then(Value::as_str) else { return Ok(None) };
    match attributes.lookup(builtin("node.k8s.io", "v1", "runtimeclasses"), name) {
        Some(class) => Ok(Some(class)),
        None => {
            let why = format!("pod rejected: RuntimeClass {} not found", Quoted(name));
            Err(attributes.forbidden(pod, &why))
        }
    }
}

fn take_over(spec: &mut Map, class: &Value) -> Result<(), String> {
    if let Some(overhead) = class.get("overhead") {
        let fixed = overhead.get("podFixed");
        let own = spec.get("overhead").filter(|own| own.as_object().is_some_and(|own| !own.is_empty()));
        if own.is_some() && !same(fixed, own) {
            return Err(OTHER_OVERHEAD.to_owned());
        }
        match fixed {
            Some(fixed) => spec.insert("overhead", fixed.clone()),
            None => spec.remove("overhead"),
        };
    }
    let Some(scheduling) = class.get("scheduling") else { return Ok(()) };
    let selector = scheduling.get("nodeSelector").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    for (key, wanted) in selector {
        let own = spec.object_mut("nodeSelector");
        let theirs = wanted.as_str().unwrap_or_default();
        if let Some(found) = own.str(key).filter(|found| *found != theirs) {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {theirs}; pod.spec.nodeSelector[{key}] = {found}"
            ));
        }
        own.insert(key, wanted.clone());
    }
    let list =
        |value: Option<&Value>| value.and_then(Value::as_array).map(<[Value]>::to_vec).unwrap_or_default();
    let mut all = list(spec.get("tolerations"));
    all.extend(list(scheduling.get("tolerations")));
    let merged = merge(&all);
    if !merged.is_empty() {
        spec.insert("tolerations", merged);
    }
    Ok(())
}

/// The same amounts of the same resources.
fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    let read = |amounts: Option<&Value>| -> Vec<(String, Quantity)> {
        let amounts = amounts.and_then(Value::as_object).into_iter().flat_map(Map::iter);
        amounts
            .map(|(name, amount)| (name.to_owned(), Quantity::from_value(amount).unwrap_or_default()))
            .collect()
    };
    read(one) == read(other)
}

/// Tolerations without those that another covers; of equal ones the first stays.
fn merge(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let covered = merged.iter().any(|kept| covers(kept, toleration))
            || all[index + 1..].iter().any(|later| later != toleration && covers(later, toleration));
        if !covered {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Whether one toleration tolerates all that another does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let seconds = |of: &Value| of.get("tolerationSeconds").and_then(Value::as_int);
    if wide == narrow {
        return true;
    }
    let everything = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(wide, "key") != text(narrow, "key") && !everything {
        return false;
    }
    let effect = text(wide, "effect");
    if !effect.is_empty() && effect != text(narrow, "effect") {
        return false;
    }
    if effect == "NoExecute"
        && let Some(longest) = seconds(wide)
        && seconds(narrow).is_none_or(|seconds| seconds > longest)
    {
        return false;
    }
    match text(wide, "operator").as_str() {
        "" | "Equal" => text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn tolerations_that_another_covers_are_not_kept() {
        let check = |all: &str, kept: &str| {
            let all = json::parse(all.as_bytes()).unwrap();
            assert_eq!(json::to_string(&Value::from(merge(all.as_array().unwrap()))), kept);
        };
        check(
            r#"[{"key":"a","operator":"Exists"},{"key":"a","operator":"Exists"}]"#,
            r#"[{"key":"a","operator":"Exists"}]"#,
        );
        check(
            r#"[{"effect":"NoSchedule","key":"a","operator":"Exists"},{"operator":"Exists"}]"#,
            r#"[{"operator":"Exists"}]"#,
        );
        check(
            r#"[{"key":"a","operator":"Equal","value":"x"},{"key":"a","operator":"Equal","value":"y"}]"#,
            r#"[{"key":"a","operator":"Equal","value":"x"},{"key":"a","operator":"Equal","value":"y"}]"#,
        );
    }

    #[test]
    fn a_pod_takes_over_what_its_class_says() {
        let check = |spec: &str, class: &str, expected: Result<&str, &str>| {
            let mut spec = json::parse(spec.as_bytes()).unwrap();
            let outcome = take_over(spec.as_object_mut().unwrap(), &json::parse(class.as_bytes()).unwrap());
            match expected {
                Ok(expected) => {
                    outcome.unwrap();
                    assert_eq!(json::to_string(&spec), expected);
                }
                Err(why) => assert_eq!(outcome.unwrap_err(), why),
            }
        };
        let costly = r#"{"overhead":{"podFixed":{"cpu":"1"}}}"#;
        check("{}", costly, Ok(r#"{"overhead":{"cpu":"1"}}"#));
        check(r#"{"overhead":{"cpu":"1000m"}}"#, costly, Ok(r#"{"overhead":{"cpu":"1"}}"#));
        check(r#"{"overhead":{"cpu":"2"}}"#, costly, Err(OTHER_OVERHEAD));
        check(
            r#"{"nodeSelector":{"a":"b"}}"#,
            r#"{"scheduling":{"nodeSelector":{"a":"c"}}}"#,
            Err("conflict: runtimeClass.scheduling.nodeSelector[a] = c; pod.spec.nodeSelector[a] = b"),
        );
    }
}
