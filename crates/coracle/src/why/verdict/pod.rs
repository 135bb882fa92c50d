//! The state of a pod: its node, its containers, its readiness gates, its last warning.

use coracle_api::Value;

use super::{Verdict, condition, is, verdict_of};
use crate::why::Facts;
use crate::why::timeline::{event_time, items, text};

pub(super) fn summarize(facts: &Facts) -> Verdict {
    let pod = &facts.object;
    let all = || {
        items(pod, "initContainerStatuses")
            .iter()
            .chain(items(pod, "containerStatuses"))
    };

    match text(pod, &["status", "phase"]) {
        "Succeeded" => return verdict_of("has succeeded", Vec::new()),
        "Failed" => {
            let ends = all().filter_map(|status| ended(status, "state"));
            return verdict_of(with_reason("has failed", pod), ends.collect());
        }
        _ => {}
    }

    let node = text(pod, &["spec", "nodeName"]);
    if node.is_empty() {
        return verdict_of("waits for a node", unscheduled(pod));
    }

    let waiting: Vec<String> = all().filter_map(container).collect();
    let ready = condition(pod, "Ready");
    if is(ready, "True") {
        return verdict_of(format!("runs on {node} and is ready"), Vec::new());
    }

    if text(pod, &["status", "phase"]) != "Running" {
        let mut waits = match waiting.is_empty() {
            true => vec![format!(
                "the kubelet of node {node} has not reported a status for it yet"
            )],
            false => waiting,
        };
        waits.extend(last_warning(facts));
        return verdict_of(
            format!("is assigned to {node} and is not running yet"),
            waits,
        );
    }

    let mut waits = waiting;
    let gates = pod
        .at(&["spec", "readinessGates"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    for gate in gates.iter().map(|gate| text(gate, &["conditionType"])) {
        if !is(condition(pod, gate), "True") {
            waits.push(format!("its readiness gate {gate} is not True"));
        }
    }

    let message = ready
        .map(|ready| text(ready, &["message"]))
        .filter(|message| waits.is_empty() && !message.is_empty());
    waits.extend(message.map(str::to_string));
    waits.extend(last_warning(facts));

    verdict_of(format!("runs on {node} and is not ready"), waits)
}

fn unscheduled(pod: &Value) -> Vec<String> {
    let Some(scheduled) = condition(pod, "PodScheduled") else {
        let scheduler = text(pod, &["spec", "schedulerName"]);
        return vec![format!(
            "scheduler {scheduler:?} has not processed it yet; check that it is running"
        )];
    };

    if text(scheduled, &["reason"]) == "SchedulingGated" {
        let gates = pod
            .at(&["spec", "schedulingGates"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let gates: Vec<&str> = gates.iter().map(|gate| text(gate, &["name"])).collect();
        return vec![format!(
            "its scheduling gates must be removed by their owners: {}",
            gates.join(", ")
        )];
    }

    vec![format!("no node fits: {}", text(scheduled, &["message"]))]
}

/// Why a container is not running or not ready.
fn container(status: &Value) -> Option<String> {
    let name = text(status, &["name"]);
    let waiting = status.at(&["state", "waiting"]);
    if let Some(waiting) = waiting {
        let message = text(waiting, &["message"]);
        let why = if message.is_empty() {
            String::new()
        } else {
            format!(": {message}")
        };

        let before = ended(status, "lastState")
            .map(|end| format!("; before that, {end}"))
            .unwrap_or_default();
        return Some(format!(
            "container {name} is {}{why}{before}",
            text(waiting, &["reason"])
        ));
    }

    let unready = status.get("ready").and_then(Value::as_bool) == Some(false);
    let runs = status.at(&["state", "running"]).is_some();

    (unready && runs).then(|| format!("container {name} is running and not ready"))
}

/// The end of a container with a non-zero exit code.
fn ended(status: &Value, state: &str) -> Option<String> {
    let end = status.at(&[state, "terminated"])?;
    let code = end
        .get("exitCode")
        .and_then(Value::as_int)
        .filter(|code| *code != 0)?;

    let why = match text(end, &["reason"]) {
        "OOMKilled" => ": it exceeded its memory limit (OOMKilled)".to_string(),
        "" | "Error" => String::new(),
        reason => format!(": {reason}"),
    };

    let message = text(end, &["message"]).trim();
    let message = if message.is_empty() {
        String::new()
    } else {
        format!(", message: {message}")
    };

    Some(format!(
        "container {} ended with exit code {code}{why}{message}",
        text(status, &["name"])
    ))
}

/// The last Warning event.
fn last_warning(facts: &Facts) -> Option<String> {
    let warnings = facts
        .events
        .iter()
        .filter(|event| text(event, &["type"]) == "Warning");
    let last = warnings.max_by_key(|event| event_time(event))?;
    Some(format!(
        "the last warning was {}: {}",
        text(last, &["reason"]),
        text(last, &["message"])
    ))
}

fn with_reason(state: &str, object: &Value) -> String {
    let messages = [
        text(object, &["status", "reason"]),
        text(object, &["status", "message"]),
    ];
    let messages: Vec<&str> = messages
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    if messages.is_empty() {
        state.to_string()
    } else {
        format!("{state} ({})", messages.join(": "))
    }
}
