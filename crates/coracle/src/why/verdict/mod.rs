//! The state of an object and what it waits for, as sentences. Pure.

mod pod;
mod service;
mod workload;

pub(super) use service::selector;

use coracle_api::Value;

use super::Facts;
use super::timeline::{items, text};

/// The verdict on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Its state in a few words.
    pub(super) state: String,
    /// What it waits for, the most important first.
    pub(super) waits_for: Vec<String>,
}

fn verdict_of(state: impl Into<String>, waits_for: Vec<String>) -> Verdict {
    Verdict {
        state: state.into(),
        waits_for,
    }
}

/// Summarizes the state of the object.
pub(super) fn summarize(facts: &Facts) -> Verdict {
    let object = &facts.object;
    if object.meta().is_being_deleted() {
        return summarize_terminating(object);
    }

    match text(object, &["kind"]) {
        "Pod" => pod::summarize(facts),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => {
            workload::summarize_replicas(facts)
        }
        "DaemonSet" => workload::summarize_daemons(facts),
        "Job" => workload::summarize_job(facts),
        "Node" => summarize_node(object),
        "Service" => service::summarize(facts),
        _ => summarize_other(object),
    }
}

fn summarize_terminating(object: &Value) -> Verdict {
    let finalizers: Vec<&str> = object.meta().finalizers().collect();
    let mut waits = Vec::new();
    if !finalizers.is_empty() {
        waits.push(format!(
            "its finalizers must be removed by their owners: {}",
            finalizers.join(", ")
        ));
    }

    let node = text(object, &["spec", "nodeName"]);
    let has_ended = ["Succeeded", "Failed"].contains(&text(object, &["status", "phase"]));
    if text(object, &["kind"]) == "Pod" && !node.is_empty() && !has_ended {
        waits.push(format!(
            "the kubelet of node {node} must stop its containers"
        ));
    }

    verdict_of("is terminating", waits)
}

/// A condition by its type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, "conditions")
        .iter()
        .find(|condition| text(condition, &["type"]) == kind)
}

fn is(condition: Option<&Value>, status: &str) -> bool {
    condition.is_some_and(|condition| text(condition, &["status"]) == status)
}

/// The first controlled pod that is not ready.
fn first_below(facts: &Facts) -> Option<String> {
    let unready = facts
        .below
        .iter()
        .filter(|below| text(below, &["kind"]) != "EndpointSlice")
        .find(|pod| {
            !is(condition(pod, "Ready"), "True") && text(pod, &["status", "phase"]) != "Succeeded"
        })?;

    let verdict = summarize(&Facts {
        object: unready.clone(),
        events: Vec::new(),
        stages: None,
        owners: Vec::new(),
        below: Vec::new(),
    });

    let why = verdict
        .waits_for
        .first()
        .map(|why| format!(": {why}"))
        .unwrap_or_default();

    Some(format!(
        "pod/{} {}{why}",
        unready.meta().name(),
        verdict.state
    ))
}

fn summarize_node(node: &Value) -> Verdict {
    let ready = condition(node, "Ready");
    let mut messages: Vec<String> = Vec::new();
    let taints = node
        .at(&["spec", "taints"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    for taint in taints {
        messages.push(format!(
            "taint {}:{} repels pods without a toleration",
            text(taint, &["key"]),
            text(taint, &["effect"])
        ));
    }

    let state = match ready.map(|ready| text(ready, &["status"])) {
        Some("True") if taints.is_empty() => "is ready",
        Some("True") => "is ready, with taints",
        Some("False") => "is not ready",
        Some(_) => "is unreachable",
        None => "has not reported a status yet",
    };

    if let Some(ready) = ready.filter(|ready| !is(Some(ready), "True")) {
        messages.insert(0, text(ready, &["message"]).to_string());
    }

    verdict_of(state, messages)
}

/// Anything else: its phase, and the conditions that are not true.
fn summarize_other(object: &Value) -> Verdict {
    let phase = text(object, &["status", "phase"]);
    let state = if phase.is_empty() {
        "exists".to_string()
    } else {
        format!("is {phase}")
    };

    let false_ones = items(object, "conditions")
        .iter()
        .filter(|condition| is(Some(condition), "False"));
    let messages = false_ones.map(|condition| {
        format!(
            "{} is False: {}",
            text(condition, &["type"]),
            text(condition, &["message"])
        )
    });

    verdict_of(state, messages.collect())
}

#[cfg(test)]
mod tests;
