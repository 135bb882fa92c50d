//! What the failure of a pod means for its Job. Pure.

use coracle_api::{Map, Text, Value};
use coracle_client::Cached;

use crate::views::{End, Job, Phase, Pod};

/// What a failed pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It counts against the limit.
    Counts,
    /// It does not count.
    Ignored,
    /// Its index has failed for good.
    Index,
    /// The whole Job has failed; with the message.
    Job(String),
}

impl Failure {
    /// Whether it counts as a failed pod.
    pub fn counts(&self) -> bool {
        *self != Failure::Ignored
    }
}

/// Whether a pod counts as failed for its Job.
pub fn has_failed(job: &Job, pod: &Pod) -> bool {
    match pod.phase {
        Phase::Failed => true,
        Phase::Succeeded => false,
        _ => pod.is_being_deleted && !job.only_replaces_failed(),
    }
}

/// Applies the pod failure policy to a failed pod: the first matching rule wins.
pub fn apply_policy(job: &Job, pod: &Cached<Pod>) -> Failure {
    let Some(policy) = job.failure_policy() else {
        return Failure::Counts;
    };

    let end = pod.end.as_deref();
    for (at, rule) in policy.items("rules").iter().enumerate() {
        let Some(rule) = rule.as_object() else {
            continue;
        };

        let Some(matched) = end.and_then(|end| matching(rule, end)) else {
            continue;
        };
        return match rule.text("action") {
            "Ignore" => Failure::Ignored,
            "FailIndex" => Failure::Index,
            "FailJob" => Failure::Job(message(&matched, &pod.key.namespace, &pod.key.name, at)),
            "Count" => Failure::Counts,
            _ => continue,
        };
    }

    Failure::Counts
}

/// What a rule matched.
enum Matched {
    Exit(Text, i64),
    Condition(Text),
}

fn matching(rule: &Map, end: &End) -> Option<Matched> {
    if let Some(codes) = rule.below("onExitCodes") {
        let container = codes.str("containerName");
        let listed = |code: i64| {
            codes
                .items("values")
                .iter()
                .any(|value| value.as_int() == Some(code))
        };

        let found = end.exit_codes.iter().find(|(name, code)| {
            let is_meant =
                container.is_none_or(|container| container == name.as_str()) && *code != 0;
            is_meant
                && match codes.text("operator") {
                    "In" => listed(*code),
                    "NotIn" => !listed(*code),
                    _ => false,
                }
        });

        return found.map(|(name, code)| Matched::Exit(name.clone(), *code));
    }

    let patterns = rule.items("onPodConditions");
    let is_meant = |kind: &Text, status: &Text| {
        let mut patterns = patterns.iter().filter_map(Value::as_object);
        patterns.any(|pattern| {
            pattern.text("type") == kind.as_str() && pattern.text("status") == status.as_str()
        })
    };

    let found = end
        .conditions
        .iter()
        .find(|(kind, status)| is_meant(kind, status));

    found.map(|(kind, _)| Matched::Condition(kind.clone()))
}

fn message(matched: &Matched, namespace: &str, name: &str, rule: usize) -> String {
    match matched {
        Matched::Exit(container, code) => format!(
            "Container {container} for pod {namespace}/{name} failed with exit code {code} matching FailJob rule at index {rule}"
        ),
        Matched::Condition(kind) => {
            format!(
                "Pod {namespace}/{name} has condition {kind} matching FailJob rule at index {rule}"
            )
        }
    }
}
