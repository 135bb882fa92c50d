//! RuntimeClass: adds the overhead, node selector and tolerations of its class to a pod.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::codec::json;
use coracle_api::go_text::Quoted;
use coracle_api::quantity::Quantity;
use coracle_api::{Map, Value};
use coracle_kinds::builtin;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct RuntimeClass;

const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

#[async_trait]
impl Plugin for RuntimeClass {
    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.does(Operation::Create, "", "pods") {
            return Ok(());
        }
        let Some(class) = class(pod, attributes)? else {
            return Ok(());
        };
        let Some(spec) = pod.as_object_mut().map(|pod| pod.object_mut("spec")) else {
            return Ok(());
        };
        take_over(spec, &class).map_err(|why| attributes.forbidden(pod, &why))
    }

    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(pod) = pod.filter(|_| attributes.does(Operation::Create, "", "pods")) else {
            return Ok(());
        };
        let class = class(pod, attributes)?;

        let own = pod.at(&["spec", "overhead"]).filter(|own| !own.is_null());
        match (class.as_ref().and_then(|class| class.get("overhead")), own) {
            (Some(overhead), own) if !same(overhead.get("podFixed"), own) => {
                Err(attributes.forbidden(pod, OTHER_OVERHEAD))
            }
            (None, Some(_)) => {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(attributes.forbidden(pod, why))
            }
            _ => Ok(()),
        }
    }
}

fn class(pod: &Value, attributes: &Attributes<'_>) -> Result<Option<Arc<Value>>, ApiError> {
    let Some(name) = pod
        .at(&["spec", "runtimeClassName"])
        .and_then(Value::as_str)
    else {
        return Ok(None);
    };

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
        let own = spec
            .get("overhead")
            .filter(|own| own.as_object().is_some_and(|own| !own.is_empty()));
        if own.is_some() && !same(fixed, own) {
            return Err(OTHER_OVERHEAD.to_owned());
        }

        match fixed {
            Some(fixed) => spec.insert("overhead", fixed.clone()),
            None => spec.remove("overhead"),
        };
    }

    let Some(scheduling) = class.get("scheduling") else {
        return Ok(());
    };
    let selector = scheduling
        .get("nodeSelector")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter);

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

    let list = |value: Option<&Value>| {
        value
            .and_then(Value::as_array)
            .map(<[Value]>::to_vec)
            .unwrap_or_default()
    };
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
        let amounts = amounts
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::iter);

        amounts
            .map(|(name, amount)| {
                (
                    name.to_owned(),
                    Quantity::from_value(amount).unwrap_or_default(),
                )
            })
            .collect()
    };

    read(one) == read(other)
}

/// Tolerations without those that another covers; of equal ones the first is kept.
fn merge(all: &[Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    let once: Vec<&Value> = all
        .iter()
        .filter(|toleration| seen.insert(json::to_string(toleration)))
        .collect();

    let parts: Vec<Parts<'_>> = once
        .iter()
        .map(|toleration| Parts::of(toleration))
        .collect();

    let mut later: HashMap<Reach<'_>, Vec<Option<i64>>> = HashMap::new();
    for wide in parts.iter().rev() {
        let longest = later.entry(wide.reach()).or_default();
        longest.push(longer(longest.last().copied(), wide.lasts()));
    }

    let mut kept: HashMap<Reach<'_>, Option<i64>> = HashMap::new();
    let mut merged = Vec::new();
    for (toleration, narrow) in once.into_iter().zip(&parts) {
        // From here on the toleration itself is none of the later ones.
        let own = narrow.reach();
        later.get_mut(&own).map(Vec::pop);
        let covered = narrow.reached_by().into_iter().any(|reach| {
            let later = later.get(&reach).and_then(|longest| longest.last());
            kept.get(&reach)
                .into_iter()
                .chain(later)
                .any(|longest| narrow.is_within(&reach, *longest))
        });

        if !covered {
            let longest = longer(kept.get(&own).copied(), narrow.lasts());
            kept.insert(own, longest);
            merged.push(toleration.clone());
        }
    }

    merged
}

/// The longer of two times; an inner `None` is forever.
fn longer(one: Option<Option<i64>>, other: Option<i64>) -> Option<i64> {
    match one {
        None => other,
        Some(one) => Some(one?.max(other?)),
    }
}

/// The parts of a toleration.
struct Parts<'t> {
    key: &'t str,
    operator: &'t str,
    value: &'t str,
    effect: &'t str,
    seconds: Option<i64>,
}

/// Which others a toleration covers, but for how long they last.
#[derive(PartialEq, Eq, Hash)]
struct Reach<'t> {
    /// `None`: taints of every key.
    key: Option<&'t str>,
    /// Empty: any.
    effect: &'t str,
    value: Values<'t>,
}

#[derive(PartialEq, Eq, Hash)]
enum Values<'t> {
    Any,
    This(&'t str),
    /// An unknown operator.
    None(&'t str),
}

impl<'t> Parts<'t> {
    fn of(toleration: &'t Value) -> Parts<'t> {
        let text = |name: &str| {
            toleration
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };

        Parts {
            key: text("key"),
            operator: text("operator"),
            value: text("value"),
            effect: text("effect"),
            seconds: toleration.get("tolerationSeconds").and_then(Value::as_int),
        }
    }

    fn reach(&self) -> Reach<'t> {
        let everything = self.key.is_empty() && self.operator == "Exists";
        let value = match self.operator {
            "" | "Equal" => Values::This(self.value),
            "Exists" => Values::Any,
            other => Values::None(other),
        };
        Reach {
            key: (!everything).then_some(self.key),
            effect: self.effect,
            value,
        }
    }

    /// For how many seconds it tolerates NoExecute; `None`: forever.
    fn lasts(&self) -> Option<i64> {
        self.seconds.filter(|_| self.effect == "NoExecute")
    }

    /// What those that cover it can be like.
    fn reached_by(&self) -> Vec<Reach<'t>> {
        let mut all = Vec::new();
        for key in [Some(self.key), None] {
            for effect in [self.effect, ""] {
                all.push(Reach {
                    key,
                    effect,
                    value: Values::Any,
                });

                if self.operator == "Equal" {
                    all.push(Reach {
                        key,
                        effect,
                        value: Values::This(self.value),
                    });
                }
            }
        }

        all
    }

    /// Whether one of such a reach lasts long enough.
    fn is_within(&self, reach: &Reach<'_>, longest: Option<i64>) -> bool {
        reach.effect != "NoExecute"
            || longest.is_none_or(|longest| self.seconds.is_some_and(|seconds| seconds <= longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, as upstream has it: each is compared with each.
    fn merged_by_pairs(all: &[Value]) -> Vec<Value> {
        let covers = |wide: &Value, narrow: &Value| {
            let (one, other) = (Parts::of(wide), Parts::of(narrow));
            let everything = one.key.is_empty() && one.operator == "Exists";
            let lasts = one.effect != "NoExecute"
                || one
                    .seconds
                    .is_none_or(|longest| other.seconds.is_some_and(|seconds| seconds <= longest));

            let value = match one.operator {
                "" | "Equal" => other.operator == "Equal" && one.value == other.value,
                operator => operator == "Exists",
            };

            let key = everything || one.key == other.key;
            wide == narrow
                || (key && (one.effect.is_empty() || one.effect == other.effect) && lasts && value)
        };

        let mut merged: Vec<Value> = Vec::new();
        for (index, toleration) in all.iter().enumerate() {
            let mut later = all[index + 1..].iter();
            if !merged.iter().any(|kept| covers(kept, toleration))
                && !later.any(|later| later != toleration && covers(later, toleration))
            {
                merged.push(toleration.clone());
            }
        }

        merged
    }

    #[test]
    fn tolerations_are_merged_as_if_each_were_compared_with_each() {
        let mut some = Vec::new();
        for key in ["", "a"] {
            for operator in ["", "Equal", "Exists", "Lt"] {
                for (value, effect, seconds) in [
                    ("", "", 0),
                    ("x", "", 0),
                    ("x", "NoExecute", 0),
                    ("", "NoExecute", 5),
                    ("", "NoExecute", 9),
                ] {
                    // Refused afterwards; two of them that cover each other are merged into either.
                    if operator == "Exists" && !value.is_empty() {
                        continue;
                    }

                    let mut toleration = Map::new();
                    let texts = [
                        ("key", key),
                        ("operator", operator),
                        ("value", value),
                        ("effect", effect),
                    ];

                    texts
                        .into_iter()
                        .filter(|(_, text)| !text.is_empty())
                        .for_each(|(name, text)| {
                            toleration.insert(name, text);
                        });

                    if seconds > 0 {
                        toleration.insert("tolerationSeconds", i64::from(seconds));
                    }

                    some.push(Value::Object(toleration));
                }
            }
        }

        for one in &some {
            for two in &some {
                for three in &some {
                    let all = [one.clone(), two.clone(), three.clone()];
                    assert_eq!(merge(&all), merged_by_pairs(&all), "{all:?}");
                }
            }
        }
    }

    #[test]
    fn tolerations_that_another_covers_are_not_kept() {
        let check = |all: &str, kept: &str| {
            let all = json::parse(all.as_bytes()).unwrap();
            assert_eq!(
                json::to_string(&Value::from(merge(all.as_array().unwrap()))),
                kept
            );
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
    fn a_pod_gets_the_overhead_and_scheduling_of_its_class() {
        let check = |spec: &str, class: &str, expected: Result<&str, &str>| {
            let mut spec = json::parse(spec.as_bytes()).unwrap();
            let outcome = take_over(
                spec.as_object_mut().unwrap(),
                &json::parse(class.as_bytes()).unwrap(),
            );

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
        check(
            r#"{"overhead":{"cpu":"1000m"}}"#,
            costly,
            Ok(r#"{"overhead":{"cpu":"1"}}"#),
        );

        check(r#"{"overhead":{"cpu":"2"}}"#, costly, Err(OTHER_OVERHEAD));
        check(
            r#"{"nodeSelector":{"a":"b"}}"#,
            r#"{"scheduling":{"nodeSelector":{"a":"c"}}}"#,
            Err(
                "conflict: runtimeClass.scheduling.nodeSelector[a] = c; pod.spec.nodeSelector[a] = b",
            ),
        );
    }
}
