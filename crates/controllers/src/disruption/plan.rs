//! The status of a PodDisruptionBudget. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::int_or_string::{IntOrString, Rounding, ScaleError};
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use coracle_client::Cached;

use super::Budget;
use crate::views::Pod;

/// A pod whose eviction was allowed counts as gone for this long, in seconds; if it still exists
/// then, it was not evicted.
const EVICTED_WITHIN: i64 = 2 * 60;

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The budget.
    pub budget: Arc<Cached<Budget>>,
    /// The pods that it selects.
    pub pods: Vec<Arc<Cached<Pod>>>,
    /// The scale of each controller, by UID.
    pub scales: BTreeMap<Text, Scale>,
}

/// The scale of a controller of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// This object has a desired number: the controller, or its own controller.
    Wants {
        /// The UID of the object.
        uid: Text,
        /// The desired number.
        replicas: i64,
    },
    /// It has no scale.
    None(String),
    /// It does not exist.
    Gone,
}

/// Why the expected number of pods is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    #[error("found no controllers for pod {0:?}")]
    NoController(String),
    #[error("{0} does not implement the scale subresource")]
    NoScale(String),
    #[error(transparent)]
    Scale(#[from] ScaleError),
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The desired status.
    pub status: Map,
    /// Pods whose eviction was allowed and that still exist.
    pub not_deleted: Vec<Arc<Cached<Pod>>>,
    /// Pods without a controller of known scale.
    pub unmanaged: Vec<Text>,
    /// Why the expected number is unknown: no disruption is allowed then.
    pub failure: Option<CountError>,
    /// When to reconcile again without an event.
    pub wake_after: Option<Duration>,
}

/// The expected number of pods, and how many of them must be healthy.
struct Counts {
    expected: i64,
    desired: i64,
    unmanaged: Vec<Text>,
}

/// Computes the budget's status.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let before = observed
        .budget
        .object
        .object
        .get("status")
        .and_then(Value::as_object);

    let mut plan = Plan {
        status: before.cloned().unwrap_or_default(),
        not_deleted: Vec::new(),
        unmanaged: Vec::new(),
        failure: None,
        wake_after: None,
    };

    let counts = match count(observed) {
        Ok(counts) => counts,
        Err(error) => {
            plan.status.insert("disruptionsAllowed", 0);
            let generation = plan.status.int("observedGeneration");
            set_condition(
                &mut plan.status,
                "SyncFailed",
                &error.to_string(),
                false,
                generation,
                now,
            );

            plan.failure = Some(error);
            return plan;
        }
    };

    let disrupted = disrupted(observed, &mut plan, now);
    let is_healthy = |pod: &&Arc<Cached<Pod>>| {
        !pod.is_being_deleted && pod.is_ready() && !disrupted.contains_key(&pod.key.name)
    };

    let healthy =
        i64::try_from(observed.pods.iter().filter(is_healthy).count()).unwrap_or(i64::MAX);
    let spare = if counts.expected > 0 {
        (healthy - counts.desired).max(0)
    } else {
        0
    };

    let generation = observed.budget.object.object.meta().generation();
    let status = &mut plan.status;
    status.insert("currentHealthy", healthy);
    status.insert("desiredHealthy", counts.desired);
    status.insert("expectedPods", counts.expected);
    status.insert("disruptionsAllowed", spare);
    status.insert("observedGeneration", generation);

    match disrupted.is_empty() {
        true => drop(status.remove("disruptedPods")),
        false => drop(status.insert("disruptedPods", disrupted)),
    }

    let reason = if spare > 0 {
        "SufficientPods"
    } else {
        "InsufficientPods"
    };
    set_condition(status, reason, "", spare > 0, generation, now);

    plan.unmanaged = counts.unmanaged;

    plan
}

/// The pods whose eviction was allowed and that still exist, with the time of the permission.
fn disrupted(observed: &Observed, plan: &mut Plan, now: Timestamp) -> Map {
    let mut left = Map::new();
    let listed = plan
        .status
        .below("disruptedPods")
        .cloned()
        .unwrap_or_default();

    for pod in observed.pods.iter().filter(|pod| !pod.is_being_deleted) {
        let Some(text) = listed.str(&pod.key.name) else {
            continue;
        };

        let Ok(since) = Time::parse(text) else {
            continue;
        };
        match since.0.plus_seconds(EVICTED_WITHIN).since(now).to_std() {
            None => plan.not_deleted.push(pod.clone()),
            Some(wait) => {
                plan.wake_after = Some(plan.wake_after.map_or(wait, |other| other.min(wait)));
                left.insert(pod.key.name.clone(), text);
            }
        }
    }

    left
}

fn count(observed: &Observed) -> Result<Counts, CountError> {
    let spec = observed
        .budget
        .object
        .object
        .get("spec")
        .and_then(Value::as_object);

    let of = |name: &str| {
        spec.and_then(|spec| spec.get(name))
            .and_then(IntOrString::from_value)
    };

    let scaled = |of: &IntOrString, total: i64| {
        of.scaled(i32::try_from(total).unwrap_or(i32::MAX), Rounding::Up)
            .map_err(CountError::from)
    };

    if let Some(unavailable) = of("maxUnavailable") {
        let (expected, unmanaged) = expected(observed)?;
        let desired = (expected - scaled(&unavailable, expected)?).max(0);
        return Ok(Counts {
            expected,
            desired,
            unmanaged,
        });
    }

    match of("minAvailable") {
        Some(IntOrString::Int(desired)) => {
            let expected = i64::try_from(observed.pods.len()).unwrap_or(i64::MAX);
            Ok(Counts {
                expected,
                desired: i64::from(desired),
                unmanaged: Vec::new(),
            })
        }
        Some(available) => {
            let (expected, unmanaged) = expected(observed)?;
            Ok(Counts {
                expected,
                desired: scaled(&available, expected)?,
                unmanaged,
            })
        }
        None => Ok(Counts {
            expected: 0,
            desired: 0,
            unmanaged: Vec::new(),
        }),
    }
}

/// The sum of the desired numbers of all controllers.
fn expected(observed: &Observed) -> Result<(i64, Vec<Text>), CountError> {
    let mut wanted: BTreeMap<&Text, i64> = BTreeMap::new();
    let mut unmanaged = Vec::new();
    for pod in &observed.pods {
        let Some(controller) = &pod.controller else {
            unmanaged.push(pod.key.name.clone());
            continue;
        };

        match observed.scales.get(&controller.uid) {
            Some(Scale::Wants { uid, replicas }) => drop(wanted.insert(uid, *replicas)),
            Some(Scale::None(resource)) => return Err(CountError::NoScale(resource.clone())),
            Some(Scale::Gone) | None => {
                return Err(CountError::NoController(pod.key.name.to_string()));
            }
        }
    }

    Ok((wanted.values().sum(), unmanaged))
}

fn set_condition(
    status: &mut Map,
    reason: &str,
    message: &str,
    holds: bool,
    generation: i64,
    now: Timestamp,
) {
    let mut conditions = status.items("conditions").to_vec();
    let is_it = |one: &Value| one.get("type").and_then(Value::as_str) == Some("DisruptionAllowed");
    let there = conditions.iter().position(is_it);
    let old = there
        .and_then(|at| conditions[at].as_object())
        .cloned()
        .unwrap_or_default();

    let holds = if holds { "True" } else { "False" };
    let mut condition = Map::new();
    condition.insert("type", "DisruptionAllowed");
    condition.insert("status", holds);
    condition.insert("observedGeneration", generation);
    condition.insert("reason", reason);
    condition.insert("message", message);

    let since = if old.text("status") == holds {
        Text::new(old.text("lastTransitionTime"))
    } else {
        Time(now).text()
    };
    condition.insert("lastTransitionTime", since);

    match there {
        Some(at) => conditions[at] = Value::Object(condition),
        None => conditions.push(Value::Object(condition)),
    }

    status.insert("conditions", conditions);
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn noon() -> Timestamp {
        Time::parse("2026-01-01T12:00:00Z").unwrap().0
    }

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    /// Pods as `name owner state`, owners as `uid root replicas`.
    fn observed(spec: &str, status: &str, pods: &[&str], scales: &[&str]) -> Observed {
        let budget = tree(&format!(
            r#"{{"metadata":{{"name":"b","namespace":"default","generation":4}},
                "spec":{{"selector":{{}},{spec}}},"status":{{{status}}}}}"#
        ));

        let pod = |words: &&str| {
            let words: Vec<&str> = words.split(' ').collect();
            let owners = match words[1] {
                "-" => String::new(),
                uid => format!(
                    r#"{{"apiVersion":"apps/v1","kind":"X","name":"x","uid":"{uid}","controller":true}}"#
                ),
            };

            let going = if words[2] == "going" {
                r#","deletionTimestamp":"2026-01-01T12:00:00Z""#
            } else {
                ""
            };

            let ready = if words[2] == "down" { "False" } else { "True" };
            Arc::new(
                Cached::of(tree(&format!(
                    r#"{{"metadata":{{"name":"{}","namespace":"default","ownerReferences":[{owners}]{going}}},
                        "status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#,
                    words[0]
                )))
                .unwrap(),
            )
        };

        let scale = |words: &&str| {
            let words: Vec<&str> = words.split(' ').collect();
            let scale = match words[2].parse() {
                Ok(replicas) => Scale::Wants {
                    uid: words[1].into(),
                    replicas,
                },
                Err(_) => Scale::None(words[2].to_string()),
            };

            (Text::new(words[0]), scale)
        };

        Observed {
            budget: Arc::new(Cached::of(budget).unwrap()),
            pods: pods.iter().map(pod).collect(),
            scales: scales.iter().map(scale).collect(),
        }
    }

    #[test]
    fn allowed_disruptions_are_the_healthy_pods_above_the_desired_number() {
        let check = |spec: &str, pods: &[&str], scales: &[&str], expected: (i64, i64, i64, i64)| {
            let plan = plan(&observed(spec, "", pods, scales), noon());
            let of = |name: &str| plan.status.int(name);
            let found = (
                of("currentHealthy"),
                of("desiredHealthy"),
                of("expectedPods"),
                of("disruptionsAllowed"),
            );
            assert_eq!(found, expected, "{spec} {pods:?} {scales:?}");

            assert_eq!(plan.failure, None);
        };

        let three = ["a r up", "b r up", "c r up"];
        let scale = ["r d 3"];
        check(r#""minAvailable":2"#, &three, &[], (3, 2, 3, 1));

        check(r#""minAvailable":3"#, &three, &[], (3, 3, 3, 0));
        check(
            r#""minAvailable":2"#,
            &["a r up", "b r down", "c r going"],
            &[],
            (1, 2, 3, 0),
        );

        check(r#""minAvailable":"50%""#, &three, &scale, (3, 2, 3, 1));
        check(r#""maxUnavailable":1"#, &three, &scale, (3, 2, 3, 1));
        check(r#""maxUnavailable":"34%""#, &three, &scale, (3, 1, 3, 2));
        check(r#""maxUnavailable":5"#, &three, &scale, (3, 0, 3, 3));

        // Two ReplicaSets of one Deployment count once, and other owners add up.
        check(
            r#""maxUnavailable":1"#,
            &["a r up", "b q up"],
            &["r d 2", "q d 2"],
            (2, 1, 2, 1),
        );

        check(
            r#""maxUnavailable":1"#,
            &["a r up", "b q up"],
            &["r d 2", "q e 3"],
            (2, 4, 5, 0),
        );

        check(r#""minAvailable":0"#, &[], &[], (0, 0, 0, 0));
    }

    #[test]
    fn a_pod_whose_eviction_was_allowed_counts_as_gone_for_two_minutes() {
        let status = r#""disruptedPods":{"a":"2026-01-01T11:59:00Z","b":"2026-01-01T11:57:00Z","x":"2026-01-01T11:59:00Z"}"#;
        let plan = plan(
            &observed(
                r#""minAvailable":1"#,
                status,
                &["a r up", "b r up", "c r up"],
                &[],
            ),
            noon(),
        );

        let left: Vec<&str> = plan.status.below("disruptedPods").unwrap().keys().collect();
        assert_eq!(left, ["a"]);

        assert_eq!(
            (
                plan.status.int("currentHealthy"),
                plan.status.int("disruptionsAllowed")
            ),
            (2, 1)
        );

        assert_eq!(plan.not_deleted[0].key.name.as_str(), "b");
        assert_eq!(plan.wake_after.unwrap().as_secs(), 60);
    }

    #[test]
    fn what_cannot_be_counted_may_not_be_disrupted() {
        let check = |pods: &[&str], scales: &[&str], expected: &str| {
            let status = r#""disruptionsAllowed":2,"observedGeneration":3"#;
            let plan = plan(
                &observed(r#""maxUnavailable":1"#, status, pods, scales),
                noon(),
            );

            let condition = plan.status.items("conditions")[0].as_object().unwrap();
            assert_eq!(
                (condition.text("status"), condition.text("reason")),
                ("False", "SyncFailed")
            );

            assert_eq!(condition.text("message"), expected);
            assert_eq!(
                (
                    plan.status.int("disruptionsAllowed"),
                    plan.status.int("observedGeneration")
                ),
                (0, 3)
            );
        };

        check(&["a r up"], &[], "found no controllers for pod \"a\"");
        check(
            &["a r up"],
            &["r r jobs.batch"],
            "jobs.batch does not implement the scale subresource",
        );
    }

    #[test]
    fn unmanaged_pods_are_reported_and_the_condition_changes_with_its_status_alone() {
        let first = plan(
            &observed(
                r#""maxUnavailable":1"#,
                "",
                &["a - up", "b r up"],
                &["r r 1"],
            ),
            noon(),
        );
        assert_eq!(first.unmanaged, ["a"]);

        let condition = first.status.items("conditions")[0].as_object().unwrap();
        assert_eq!(
            (condition.text("status"), condition.text("reason")),
            ("True", "SufficientPods")
        );

        let mut again = observed(
            r#""maxUnavailable":1"#,
            "",
            &["a - up", "b r up"],
            &["r r 1"],
        );
        let mut object = Value::clone(&again.budget.object.object);
        object
            .as_object_mut()
            .unwrap()
            .insert("status", first.status.clone());

        again.budget = Arc::new(Cached::of(object).unwrap());
        assert_eq!(plan(&again, noon().plus_seconds(60)).status, first.status);
    }
}
