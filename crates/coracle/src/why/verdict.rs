//! The state of an object and what it waits for, as sentences. Pure.

use coracle_api::Value;

use super::Facts;
use super::timeline::{event_time, items, text};

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
pub(super) fn verdict(facts: &Facts) -> Verdict {
    let object = &facts.object;
    if object.meta().is_being_deleted() {
        return terminating(object);
    }

    match text(object, &["kind"]) {
        "Pod" => pod(facts),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => replicas(facts),
        "DaemonSet" => daemons(facts),
        "Job" => job(facts),
        "Node" => node(object),
        "Service" => service(facts),
        _ => other(object),
    }
}

fn terminating(object: &Value) -> Verdict {
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

fn pod(facts: &Facts) -> Verdict {
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

fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
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

    let verdict = verdict(&Facts {
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

/// Failure conditions that the controller has set.
fn complaints(object: &Value) -> Vec<String> {
    let mut messages = Vec::new();
    if let Some(failure) =
        condition(object, "ReplicaFailure").filter(|failure| is(Some(failure), "True"))
    {
        messages.push(format!(
            "pods cannot be created: {}",
            text(failure, &["message"])
        ));
    }

    if let Some(progress) =
        condition(object, "Progressing").filter(|progress| is(Some(progress), "False"))
    {
        messages.push(format!(
            "its rollout makes no progress: {}",
            text(progress, &["message"])
        ));
    }

    messages
}

fn behind(object: &Value) -> Option<String> {
    let (seen, is) = (
        number(object, &["status", "observedGeneration"]),
        object.meta().generation(),
    );
    (seen < is).then(|| {
        "its controller has not observed the last change yet; check that it is running".to_string()
    })
}

fn replicas(facts: &Facts) -> Verdict {
    let object = &facts.object;
    let wanted = object
        .at(&["spec", "replicas"])
        .and_then(Value::as_int)
        .unwrap_or(1);

    let available = number(object, &["status", "availableReplicas"]);
    let mut state = format!("has {available} of {wanted} pods available");
    let newest = number(object, &["status", "updatedReplicas"]);

    // Old pods keep running until new ones are ready: all may be available while the rollout is
    // stuck.
    let changes = matches!(text(object, &["kind"]), "Deployment" | "StatefulSet")
        && (newest < wanted || number(object, &["status", "replicas"]) > newest);
    if changes && available >= wanted {
        state += &format!(", {newest} of them updated");
    }

    let mut waits: Vec<String> = behind(object).into_iter().collect();
    if object.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true) {
        waits.push("it is paused; resume it with `kubectl rollout resume`".to_string());
    }

    waits.extend(complaints(object));

    if available < wanted || changes {
        waits.extend(first_below(facts));
    }

    verdict_of(state, waits)
}

/// The selector of a Service as a label selector; `None`: it has none.
pub(super) fn selector(service: &Value) -> Option<String> {
    let wanted = service
        .at(&["spec", "selector"])
        .and_then(Value::as_object)?;
    let terms = wanted
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
    let terms: Vec<String> = terms.collect();
    (!terms.is_empty()).then(|| terms.join(","))
}

/// The endpoints of a Service, by its slices and pods.
fn service(facts: &Facts) -> Verdict {
    let spec = |name: &str| text(&facts.object, &["spec", name]);
    if spec("type") == "ExternalName" {
        return verdict_of(
            format!("is an alias of {}", spec("externalName")),
            Vec::new(),
        );
    }

    let of_kind = |kind: &'static str| {
        facts
            .below
            .iter()
            .filter(move |below| text(below, &["kind"]) == kind)
    };

    let endpoints = of_kind("EndpointSlice").flat_map(|slice| {
        slice
            .get("endpoints")
            .and_then(Value::as_array)
            .unwrap_or_default()
    });

    let is_ready = |endpoint: &&Value| {
        endpoint
            .at(&["conditions", "ready"])
            .and_then(Value::as_bool)
            != Some(false)
    };

    let ready = endpoints.filter(is_ready).count();
    let Some(selector) = selector(&facts.object) else {
        return verdict_of(
            format!("has {ready} ready endpoints and no selector"),
            Vec::new(),
        );
    };

    let mut waits = Vec::new();
    if of_kind("Pod").next().is_none() {
        waits.push(format!("no pods match its selector {selector}"));
    } else if ready == 0 {
        waits.extend(first_below(facts));
    }

    verdict_of(format!("has {ready} ready endpoints"), waits)
}

fn daemons(facts: &Facts) -> Verdict {
    let count = |name: &str| number(&facts.object, &["status", name]);
    let (wanted, available) = (count("desiredNumberScheduled"), count("numberAvailable"));
    let mut waits: Vec<String> = behind(&facts.object).into_iter().collect();
    if available < wanted {
        waits.extend(first_below(facts));
    }
    verdict_of(format!("runs on {available} of {wanted} nodes"), waits)
}

fn job(facts: &Facts) -> Verdict {
    let object = &facts.object;
    for (kind, state) in [
        ("Complete", "is complete"),
        ("Failed", "has failed"),
        ("Suspended", "is suspended"),
    ] {
        if let Some(condition) =
            condition(object, kind).filter(|condition| is(Some(condition), "True"))
        {
            let message = text(condition, &["message"]);
            let why = if message.is_empty() {
                String::new()
            } else {
                format!(" ({message})")
            };
            return verdict_of(format!("{state}{why}"), Vec::new());
        }
    }

    let count = |name: &str| number(object, &["status", name]);
    let wanted = object
        .at(&["spec", "completions"])
        .and_then(Value::as_int)
        .unwrap_or(1);

    let (done, failed, active) = (count("succeeded"), count("failed"), count("active"));
    let state =
        format!("has {done} of {wanted} completions, {failed} failures, {active} active pods");

    verdict_of(state, first_below(facts).into_iter().collect())
}

fn node(node: &Value) -> Verdict {
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
fn other(object: &Value) -> Verdict {
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
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn facts(object: &str, below: &[&str]) -> Facts {
        let parsed = |text: &str| yaml::decode(text.as_bytes()).unwrap();
        let below = below.iter().map(|text| parsed(text)).collect();
        Facts {
            object: parsed(object),
            events: Vec::new(),
            stages: None,
            owners: Vec::new(),
            below,
        }
    }

    fn check(object: &str, below: &[&str], state: &str, waits_for: &[&str]) {
        let waits_for = waits_for.iter().map(ToString::to_string).collect();
        assert_eq!(
            verdict(&facts(object, below)),
            verdict_of(state, waits_for),
            "{object}"
        );
    }

    #[test]
    fn a_pod_reports_exit_codes_and_the_last_warning() {
        check(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Failed, containerStatuses: [\
             {name: a, state: {terminated: {exitCode: 0, reason: Completed}}},\
             {name: c, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}",
            &[],
            "has failed",
            &["container c ended with exit code 137: it exceeded its memory limit (OOMKilled)"],
        );

        check(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Running, containerStatuses: [{name: c, \
             state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, \
             lastState: {terminated: {exitCode: 3, reason: Error, message: no such file}}}]}}",
            &[],
            "runs on n1 and is not ready",
            &[
                "container c is CrashLoopBackOff: back-off 10s; before that, container c ended with exit code 3, message: no such file",
            ],
        );

        let event = |second: u32, reason: &str| {
            let text = format!(
                "{{type: Warning, reason: {reason}, message: it fails, lastTimestamp: '2026-03-01T11:00:0{second}Z'}}"
            );
            yaml::decode(text.as_bytes()).unwrap()
        };

        let mut facts = facts(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Pending}}",
            &[],
        );
        facts.events = vec![event(2, "FailedMount"), event(1, "FailedScheduling")];

        assert_eq!(
            verdict(&facts).waits_for[1],
            "the last warning was FailedMount: it fails"
        );
    }

    const UNFIT: &str = "{kind: Pod, metadata: {name: p}, spec: {}, status: {phase: Pending, conditions: [\
        {type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/5 nodes are available'}]}}";

    #[test]
    fn a_pending_pod_reports_what_it_waits_for() {
        check(
            UNFIT,
            &[],
            "waits for a node",
            &["no node fits: 0/5 nodes are available"],
        );

        check(
            "{kind: Pod, spec: {schedulerName: mine}, status: {phase: Pending}}",
            &[],
            "waits for a node",
            &["scheduler \"mine\" has not processed it yet; check that it is running"],
        );

        check(
            "{kind: Pod, spec: {schedulingGates: [{name: a}, {name: b}]}, status: {conditions: [\
             {type: PodScheduled, status: 'False', reason: SchedulingGated}]}}",
            &[],
            "waits for a node",
            &["its scheduling gates must be removed by their owners: a, b"],
        );

        check(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Pending, containerStatuses: [\
             {name: c, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}}",
            &[],
            "is assigned to n1 and is not running yet",
            &["container c is ImagePullBackOff: no such image"],
        );

        check(
            "{kind: Pod, spec: {nodeName: n1, readinessGates: [{conditionType: g}]}, status: {phase: Running}}",
            &[],
            "runs on n1 and is not ready",
            &["its readiness gate g is not True"],
        );

        check(
            "{kind: Pod, metadata: {deletionTimestamp: '2026-03-01T11:00:00Z', finalizers: [f]}, spec: {nodeName: n1}}",
            &[],
            "is terminating",
            &[
                "its finalizers must be removed by their owners: f",
                "the kubelet of node n1 must stop its containers",
            ],
        );
    }

    #[test]
    fn a_service_reports_its_endpoints() {
        let service = "{kind: Service, spec: {selector: {app: web, tier: a}}}";
        let slice = "{kind: EndpointSlice, endpoints: [{conditions: {ready: true}}, {conditions: {ready: false}}, {}]}";
        let unready = "{kind: EndpointSlice, endpoints: [{conditions: {ready: false}}]}";

        check(service, &[slice, UNFIT], "has 2 ready endpoints", &[]);
        check(
            service,
            &[unready, UNFIT],
            "has 0 ready endpoints",
            &["pod/p waits for a node: no node fits: 0/5 nodes are available"],
        );

        check(
            service,
            &[],
            "has 0 ready endpoints",
            &["no pods match its selector app=web,tier=a"],
        );

        check(
            "{kind: Service, spec: {}}",
            &[slice],
            "has 2 ready endpoints and no selector",
            &[],
        );

        check(
            "{kind: Service, spec: {type: ExternalName, externalName: example.org}}",
            &[],
            "is an alias of example.org",
            &[],
        );
    }

    #[test]
    fn a_workload_reports_the_first_unready_pod() {
        check(
            "{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2, availableReplicas: 1}}",
            &[UNFIT],
            "has 1 of 3 pods available",
            &["pod/p waits for a node: no node fits: 0/5 nodes are available"],
        );

        check(
            "{kind: Deployment, spec: {replicas: 3}, status: {replicas: 4, updatedReplicas: 1, availableReplicas: 3}}",
            &[UNFIT],
            "has 3 of 3 pods available, 1 of them updated",
            &["pod/p waits for a node: no node fits: 0/5 nodes are available"],
        );

        check(
            "{kind: Deployment, spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, availableReplicas: 3}}",
            &[],
            "has 3 of 3 pods available",
            &[],
        );

        check(
            "{kind: ReplicaSet, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1}}",
            &[],
            "has 0 of 1 pods available",
            &["its controller has not observed the last change yet; check that it is running"],
        );

        check(
            "{kind: Job, spec: {completions: 2}, status: {succeeded: 1, active: 1}}",
            &[],
            "has 1 of 2 completions, 0 failures, 1 active pods",
            &[],
        );

        check(
            "{kind: Node, spec: {taints: [{key: k, effect: NoSchedule}]}, status: {conditions: [\
             {type: Ready, status: Unknown, message: Kubelet stopped posting node status.}]}}",
            &[],
            "is unreachable",
            &[
                "Kubelet stopped posting node status.",
                "taint k:NoSchedule repels pods without a toleration",
            ],
        );
    }
}
