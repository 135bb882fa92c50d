//! How an object is and what it waits for, in a person's words. Pure.

use coracle_api::Value;

use super::Found;
use super::timeline::{event_time, items, text};

/// What is to be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How it is, in a few words.
    pub(super) state: String,
    /// What it waits for, the first thing first.
    pub(super) waits_for: Vec<String>,
}

fn verdict_of(state: impl Into<String>, waits_for: Vec<String>) -> Verdict {
    Verdict {
        state: state.into(),
        waits_for,
    }
}

/// How the object is.
pub(super) fn verdict(found: &Found) -> Verdict {
    let object = &found.object;
    if object.meta().is_being_deleted() {
        return going(object);
    }

    match text(object, &["kind"]) {
        "Pod" => pod(found),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => replicas(found),
        "DaemonSet" => daemons(found),
        "Job" => job(found),
        "Node" => node(object),
        "Service" => service(found),
        _ => other(object),
    }
}

fn going(object: &Value) -> Verdict {
    let finalizers: Vec<&str> = object.meta().finalizers().collect();
    let mut waits = Vec::new();
    if !finalizers.is_empty() {
        waits.push(format!(
            "whoever set these finalizers must take them away: {}",
            finalizers.join(", ")
        ));
    }

    let node = text(object, &["spec", "nodeName"]);
    let has_ended = ["Succeeded", "Failed"].contains(&text(object, &["status", "phase"]));
    if text(object, &["kind"]) == "Pod" && !node.is_empty() && !has_ended {
        waits.push(format!("node {node} must end its containers and let it go"));
    }

    verdict_of("is going", waits)
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

fn pod(found: &Found) -> Verdict {
    let pod = &found.object;
    let all = || {
        items(pod, "initContainerStatuses")
            .iter()
            .chain(items(pod, "containerStatuses"))
    };

    match text(pod, &["status", "phase"]) {
        "Succeeded" => return verdict_of("has ended well", Vec::new()),
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
                "node {node} must take it up: nothing has been heard from there yet"
            )],
            false => waiting,
        };
        waits.extend(last_warning(found));
        return verdict_of(format!("is on {node} and does not run yet"), waits);
    }

    let mut waits = waiting;
    let gates = pod
        .at(&["spec", "readinessGates"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    for gate in gates.iter().map(|gate| text(gate, &["conditionType"])) {
        if !is(condition(pod, gate), "True") {
            waits.push(format!(
                "somebody must set its condition {gate} to True: it is a readiness gate"
            ));
        }
    }

    let told = ready
        .map(|ready| text(ready, &["message"]))
        .filter(|told| waits.is_empty() && !told.is_empty());
    waits.extend(told.map(str::to_string));
    waits.extend(last_warning(found));

    verdict_of(format!("runs on {node} and is not ready"), waits)
}

/// What somebody warned of last.
fn last_warning(found: &Found) -> Option<String> {
    let warnings = found
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

/// How a container ended that did not end well.
fn ended(status: &Value, state: &str) -> Option<String> {
    let end = status.at(&[state, "terminated"])?;
    let code = end
        .get("exitCode")
        .and_then(Value::as_int)
        .filter(|code| *code != 0)?;

    let why = match text(end, &["reason"]) {
        "OOMKilled" => ": it used more memory than it may (OOMKilled)".to_string(),
        "" | "Error" => String::new(),
        reason => format!(": {reason}"),
    };

    let told = text(end, &["message"]).trim();
    let told = if told.is_empty() {
        String::new()
    } else {
        format!(", and said: {told}")
    };

    Some(format!(
        "container {} ended with exit code {code}{why}{told}",
        text(status, &["name"])
    ))
}

fn unscheduled(pod: &Value) -> Vec<String> {
    let Some(scheduled) = condition(pod, "PodScheduled") else {
        let scheduler = text(pod, &["spec", "schedulerName"]);
        return vec![format!(
            "the scheduler {scheduler:?} must look at it: it has not yet, or there is none of that name"
        )];
    };

    if text(scheduled, &["reason"]) == "SchedulingGated" {
        let gates = pod
            .at(&["spec", "schedulingGates"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let gates: Vec<&str> = gates.iter().map(|gate| text(gate, &["name"])).collect();
        return vec![format!(
            "whoever set these scheduling gates must take them away: {}",
            gates.join(", ")
        )];
    }

    vec![format!(
        "no node will do: {}",
        text(scheduled, &["message"])
    )]
}

/// What a container that does not run waits for.
fn container(status: &Value) -> Option<String> {
    let name = text(status, &["name"]);
    let waiting = status.at(&["state", "waiting"]);
    if let Some(waiting) = waiting {
        let told = text(waiting, &["message"]);
        let why = if told.is_empty() {
            String::new()
        } else {
            format!(": {told}")
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

    (unready && runs).then(|| format!("container {name} runs and is not ready"))
}

fn with_reason(state: &str, object: &Value) -> String {
    let told = [
        text(object, &["status", "reason"]),
        text(object, &["status", "message"]),
    ];
    let told: Vec<&str> = told.into_iter().filter(|text| !text.is_empty()).collect();
    if told.is_empty() {
        state.to_string()
    } else {
        format!("{state} ({})", told.join(": "))
    }
}

fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
}

/// The first pod below that is not as it should be.
fn first_below(found: &Found) -> Option<String> {
    let unready = found
        .below
        .iter()
        .filter(|below| text(below, &["kind"]) != "EndpointSlice")
        .find(|pod| {
            !is(condition(pod, "Ready"), "True") && text(pod, &["status", "phase"]) != "Succeeded"
        })?;

    let verdict = verdict(&Found {
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

/// What a controller has said of its failure to make pods, or to make progress.
fn complaints(object: &Value) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(failure) =
        condition(object, "ReplicaFailure").filter(|failure| is(Some(failure), "True"))
    {
        told.push(format!(
            "pods cannot be made: {}",
            text(failure, &["message"])
        ));
    }

    if let Some(progress) =
        condition(object, "Progressing").filter(|progress| is(Some(progress), "False"))
    {
        told.push(format!(
            "it makes no progress: {}",
            text(progress, &["message"])
        ));
    }

    told
}

fn behind(object: &Value) -> Option<String> {
    let (seen, is) = (
        number(object, &["status", "observedGeneration"]),
        object.meta().generation(),
    );
    (seen < is).then(|| {
        "its controller must look at its last change: it has not yet, or does not run".to_string()
    })
}

fn replicas(found: &Found) -> Verdict {
    let object = &found.object;
    let wanted = object
        .at(&["spec", "replicas"])
        .and_then(Value::as_int)
        .unwrap_or(1);

    let available = number(object, &["status", "availableReplicas"]);
    let mut state = format!("has {available} of {wanted} pods available");
    let newest = number(object, &["status", "updatedReplicas"]);

    // Old pods go on until new ones are ready: all may be available while nothing new ever comes.
    let changes = matches!(text(object, &["kind"]), "Deployment" | "StatefulSet")
        && (newest < wanted || number(object, &["status", "replicas"]) > newest);
    if changes && available >= wanted {
        state += &format!(", and {newest} of the newest version");
    }

    let mut waits: Vec<String> = behind(object).into_iter().collect();
    if object.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true) {
        waits.push("somebody must resume it: it is paused".to_string());
    }

    waits.extend(complaints(object));

    if available < wanted || changes {
        waits.extend(first_below(found));
    }

    verdict_of(state, waits)
}

/// The labels that a Service looks for, as a list is asked for them; none: it looks for nothing.
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

/// Where a Service leads, by the slices and pods below it.
fn service(found: &Found) -> Verdict {
    let spec = |name: &str| text(&found.object, &["spec", name]);
    if spec("type") == "ExternalName" {
        return verdict_of(
            format!("is another name of {}", spec("externalName")),
            Vec::new(),
        );
    }

    let of_kind = |kind: &'static str| {
        found
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
    let Some(selector) = selector(&found.object) else {
        return verdict_of(
            format!("leads to {ready} addresses, which somebody else keeps"),
            Vec::new(),
        );
    };

    let mut waits = Vec::new();
    if of_kind("Pod").next().is_none() {
        waits.push(format!(
            "somebody must make pods with the labels {selector}: there are none"
        ));
    } else if ready == 0 {
        waits.extend(first_below(found));
    }

    verdict_of(format!("leads to {ready} ready pods"), waits)
}

fn daemons(found: &Found) -> Verdict {
    let count = |name: &str| number(&found.object, &["status", name]);
    let (wanted, available) = (count("desiredNumberScheduled"), count("numberAvailable"));
    let mut waits: Vec<String> = behind(&found.object).into_iter().collect();
    if available < wanted {
        waits.extend(first_below(found));
    }
    verdict_of(format!("runs on {available} of {wanted} nodes"), waits)
}

fn job(found: &Found) -> Verdict {
    let object = &found.object;
    for (kind, state) in [
        ("Complete", "is complete"),
        ("Failed", "has failed"),
        ("Suspended", "is suspended"),
    ] {
        if let Some(condition) =
            condition(object, kind).filter(|condition| is(Some(condition), "True"))
        {
            let told = text(condition, &["message"]);
            let why = if told.is_empty() {
                String::new()
            } else {
                format!(" ({told})")
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
        format!("has {done} of {wanted} completions, {failed} failures, {active} pods at work");

    verdict_of(state, first_below(found).into_iter().collect())
}

fn node(node: &Value) -> Verdict {
    let ready = condition(node, "Ready");
    let mut told: Vec<String> = Vec::new();
    let taints = node
        .at(&["spec", "taints"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    for taint in taints {
        told.push(format!(
            "the taint {}:{} keeps pods away",
            text(taint, &["key"]),
            text(taint, &["effect"])
        ));
    }

    let state = match ready.map(|ready| text(ready, &["status"])) {
        Some("True") if taints.is_empty() => "is ready",
        Some("True") => "is ready, and takes not every pod",
        Some("False") => "is not ready",
        Some(_) => "has fallen silent",
        None => "has never said how it is",
    };

    if let Some(ready) = ready.filter(|ready| !is(Some(ready), "True")) {
        told.insert(0, text(ready, &["message"]).to_string());
    }

    verdict_of(state, told)
}

/// Anything else: its phase, and the conditions that are not true.
fn other(object: &Value) -> Verdict {
    let phase = text(object, &["status", "phase"]);
    let state = if phase.is_empty() {
        "is there".to_string()
    } else {
        format!("is {phase}")
    };

    let false_ones = items(object, "conditions")
        .iter()
        .filter(|condition| is(Some(condition), "False"));
    let told = false_ones.map(|condition| {
        format!(
            "{} is False: {}",
            text(condition, &["type"]),
            text(condition, &["message"])
        )
    });

    verdict_of(state, told.collect())
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn found(object: &str, below: &[&str]) -> Found {
        let parsed = |text: &str| yaml::decode(text.as_bytes()).unwrap();
        let below = below.iter().map(|text| parsed(text)).collect();
        Found {
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
            verdict(&found(object, below)),
            verdict_of(state, waits_for),
            "{object}"
        );
    }

    #[test]
    fn a_pod_tells_how_its_containers_ended_and_what_was_warned_of() {
        check(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Failed, containerStatuses: [\
             {name: a, state: {terminated: {exitCode: 0, reason: Completed}}},\
             {name: c, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}",
            &[],
            "has failed",
            &["container c ended with exit code 137: it used more memory than it may (OOMKilled)"],
        );

        check(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Running, containerStatuses: [{name: c, \
             state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, \
             lastState: {terminated: {exitCode: 3, reason: Error, message: no such file}}}]}}",
            &[],
            "runs on n1 and is not ready",
            &[
                "container c is CrashLoopBackOff: back-off 10s; before that, container c ended with exit code 3, and said: no such file",
            ],
        );

        let event = |second: u32, reason: &str| {
            let text = format!(
                "{{type: Warning, reason: {reason}, message: it fails, lastTimestamp: '2026-03-01T11:00:0{second}Z'}}"
            );
            yaml::decode(text.as_bytes()).unwrap()
        };

        let mut found = found(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Pending}}",
            &[],
        );
        found.events = vec![event(2, "FailedMount"), event(1, "FailedScheduling")];

        assert_eq!(
            verdict(&found).waits_for[1],
            "the last warning was FailedMount: it fails"
        );
    }

    const UNFIT: &str = "{kind: Pod, metadata: {name: p}, spec: {}, status: {phase: Pending, conditions: [\
        {type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/5 nodes are available'}]}}";

    #[test]
    fn a_pod_says_what_it_waits_for() {
        check(
            UNFIT,
            &[],
            "waits for a node",
            &["no node will do: 0/5 nodes are available"],
        );

        check(
            "{kind: Pod, spec: {schedulerName: mine}, status: {phase: Pending}}",
            &[],
            "waits for a node",
            &[
                "the scheduler \"mine\" must look at it: it has not yet, or there is none of that name",
            ],
        );

        check(
            "{kind: Pod, spec: {schedulingGates: [{name: a}, {name: b}]}, status: {conditions: [\
             {type: PodScheduled, status: 'False', reason: SchedulingGated}]}}",
            &[],
            "waits for a node",
            &["whoever set these scheduling gates must take them away: a, b"],
        );

        check(
            "{kind: Pod, spec: {nodeName: n1}, status: {phase: Pending, containerStatuses: [\
             {name: c, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}}",
            &[],
            "is on n1 and does not run yet",
            &["container c is ImagePullBackOff: no such image"],
        );

        check(
            "{kind: Pod, spec: {nodeName: n1, readinessGates: [{conditionType: g}]}, status: {phase: Running}}",
            &[],
            "runs on n1 and is not ready",
            &["somebody must set its condition g to True: it is a readiness gate"],
        );

        check(
            "{kind: Pod, metadata: {deletionTimestamp: '2026-03-01T11:00:00Z', finalizers: [f]}, spec: {nodeName: n1}}",
            &[],
            "is going",
            &[
                "whoever set these finalizers must take them away: f",
                "node n1 must end its containers and let it go",
            ],
        );
    }

    #[test]
    fn a_service_tells_where_it_leads() {
        let service = "{kind: Service, spec: {selector: {app: web, tier: a}}}";
        let slice = "{kind: EndpointSlice, endpoints: [{conditions: {ready: true}}, {conditions: {ready: false}}, {}]}";
        let unready = "{kind: EndpointSlice, endpoints: [{conditions: {ready: false}}]}";

        check(service, &[slice, UNFIT], "leads to 2 ready pods", &[]);
        check(
            service,
            &[unready, UNFIT],
            "leads to 0 ready pods",
            &["pod/p waits for a node: no node will do: 0/5 nodes are available"],
        );

        check(
            service,
            &[],
            "leads to 0 ready pods",
            &["somebody must make pods with the labels app=web,tier=a: there are none"],
        );

        check(
            "{kind: Service, spec: {}}",
            &[slice],
            "leads to 2 addresses, which somebody else keeps",
            &[],
        );

        check(
            "{kind: Service, spec: {type: ExternalName, externalName: example.org}}",
            &[],
            "is another name of example.org",
            &[],
        );
    }

    #[test]
    fn a_workload_points_at_what_holds_it_up() {
        check(
            "{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2, availableReplicas: 1}}",
            &[UNFIT],
            "has 1 of 3 pods available",
            &["pod/p waits for a node: no node will do: 0/5 nodes are available"],
        );

        check(
            "{kind: Deployment, spec: {replicas: 3}, status: {replicas: 4, updatedReplicas: 1, availableReplicas: 3}}",
            &[UNFIT],
            "has 3 of 3 pods available, and 1 of the newest version",
            &["pod/p waits for a node: no node will do: 0/5 nodes are available"],
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
            &["its controller must look at its last change: it has not yet, or does not run"],
        );

        check(
            "{kind: Job, spec: {completions: 2}, status: {succeeded: 1, active: 1}}",
            &[],
            "has 1 of 2 completions, 0 failures, 1 pods at work",
            &[],
        );

        check(
            "{kind: Node, spec: {taints: [{key: k, effect: NoSchedule}]}, status: {conditions: [\
             {type: Ready, status: Unknown, message: Kubelet stopped posting node status.}]}}",
            &[],
            "has fallen silent",
            &[
                "Kubelet stopped posting node status.",
                "the taint k:NoSchedule keeps pods away",
            ],
        );
    }
}
