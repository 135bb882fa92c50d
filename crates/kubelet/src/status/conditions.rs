//! The conditions that the kubelet owns.

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition, PodStatus};

use super::{StatusInputs, is_terminal, time};
use crate::actions::sandbox_plan;
use crate::pod::{Kind, PodView};

/// Conditions that only the kubelet writes.
pub(super) const OWNED: [&str; 8] = [
    "PodScheduled",
    "Ready",
    "Initialized",
    "ContainersReady",
    "PodReadyToStartContainers",
    "PodResizeInProgress",
    "PodResizePending",
    "AllContainersRestarting",
];

/// A condition without its times.
struct ConditionValue {
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl ConditionValue {
    fn yes() -> ConditionValue {
        ConditionValue {
            is_true: true,
            reason: "",
            message: String::new(),
        }
    }

    fn no(reason: &'static str, message: String) -> ConditionValue {
        ConditionValue {
            is_true: false,
            reason,
            message,
        }
    }
}

/// Sets the owned conditions, after those of others.
pub(super) fn set(inputs: &StatusInputs<'_>, status: &mut PodStatus) {
    let others = inputs.pod.pod_status().conditions.iter().flatten();
    let mut all: Vec<PodCondition> = others
        .filter(|condition| !OWNED.contains(&condition.type_.as_str()))
        .cloned()
        .collect();

    let of_containers: Vec<ContainerStatus> = status
        .init_container_statuses
        .iter()
        .chain(&status.container_statuses)
        .flatten()
        .cloned()
        .collect();

    let phase = status.phase.as_deref().unwrap_or_default();
    let sandbox = if sandbox_plan(inputs.pod, inputs.observed).create {
        ConditionValue::no("", String::new())
    } else {
        ConditionValue::yes()
    };

    let containers = containers_ready(inputs, &of_containers, phase);
    let ready = match containers.is_true {
        true => readiness_gates(inputs, &all),
        false => ConditionValue::no(containers.reason, containers.message.clone()),
    };

    let owned = [
        ("PodReadyToStartContainers", sandbox),
        ("Initialized", initialized(inputs, &of_containers, phase)),
        ("Ready", ready),
        ("ContainersReady", containers),
        ("PodScheduled", ConditionValue::yes()),
    ];

    all.extend(
        owned
            .into_iter()
            .map(|(name, value)| condition(inputs, name, value)),
    );

    status.conditions = Some(all);
}

fn condition(inputs: &StatusInputs<'_>, name: &str, value: ConditionValue) -> PodCondition {
    let status = if value.is_true { "True" } else { "False" };
    let before = inputs
        .before
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == name);

    let same = before.filter(|before| before.status == status);
    PodCondition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: Some(value.reason.to_owned()).filter(|text| !text.is_empty()),
        message: Some(value.message).filter(|text| !text.is_empty()),
        last_transition_time: same
            .and_then(|before| before.last_transition_time.clone())
            .or_else(|| Some(time(inputs.now))),
        last_probe_time: None,
        observed_generation: inputs.pod.metadata.generation,
    }
}

fn containers_ready(
    inputs: &StatusInputs<'_>,
    statuses: &[ContainerStatus],
    phase: &str,
) -> ConditionValue {
    if statuses.is_empty() {
        return ConditionValue::no("UnknownContainerStatuses", String::new());
    }

    let (mut unknown, mut unready) = (Vec::new(), Vec::new());
    for (kind, container) in inputs
        .pod
        .lasting_containers()
        .filter(|(kind, _)| *kind != Kind::Init)
    {
        debug_assert!(
            kind != Kind::Ephemeral,
            "they are not among the lasting ones"
        );

        match statuses.iter().find(|status| status.name == container.name) {
            None => unknown.push(container.name.as_str()),
            Some(status) if !status.ready => unready.push(container.name.as_str()),
            Some(_) => {}
        }
    }

    match phase {
        "Failed" => ConditionValue::no("PodFailed", String::new()),
        "Succeeded" if unknown.is_empty() => ConditionValue::no("PodCompleted", String::new()),
        _ => match named(&[("unknown", &unknown), ("unready", &unready)]) {
            text if text.is_empty() => ConditionValue::yes(),
            text => ConditionValue::no("ContainersNotReady", text),
        },
    }
}

/// Evaluates the readiness gates.
fn readiness_gates(inputs: &StatusInputs<'_>, others: &[PodCondition]) -> ConditionValue {
    let readiness_gates = inputs.pod.pod_spec().readiness_gates.iter().flatten();
    let missing: Vec<String> = readiness_gates
        .filter_map(|gate| {
            let name = &gate.condition_type;
            match others.iter().find(|condition| condition.type_ == *name) {
                None => Some(format!(
                    "corresponding condition of pod readiness gate {name:?} does not exist."
                )),
                Some(condition) if condition.status != "True" => Some(format!(
                    "the status of pod readiness gate {name:?} is not \"True\", but {}",
                    condition.status
                )),
                Some(_) => None,
            }
        })
        .collect();

    if missing.is_empty() {
        ConditionValue::yes()
    } else {
        ConditionValue::no("ReadinessGatesNotReady", missing.join(", "))
    }
}

fn initialized(
    inputs: &StatusInputs<'_>,
    statuses: &[ContainerStatus],
    phase: &str,
) -> ConditionValue {
    let specs = inputs.pod.lasting_containers();
    let (mut unknown, mut incomplete) = (Vec::new(), Vec::new());
    for (kind, container) in specs.filter(|(kind, _)| *kind != Kind::Main) {
        match statuses.iter().find(|status| status.name == container.name) {
            None => unknown.push(container.name.as_str()),
            Some(status) => {
                let done = if kind == Kind::Sidecar {
                    status.started.unwrap_or_default()
                } else {
                    status.ready
                };
                if !done {
                    incomplete.push(container.name.as_str());
                }
            }
        }
    }

    if phase == "Succeeded" && unknown.is_empty() {
        return ConditionValue {
            reason: "PodCompleted",
            ..ConditionValue::yes()
        };
    }

    let began = |status: &ContainerStatus| {
        let is_main = inputs
            .pod
            .pod_spec()
            .containers
            .iter()
            .any(|container| container.name == status.name);
        let state = status.state.as_ref();
        is_main && state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };

    if statuses.iter().any(began) {
        return ConditionValue::yes();
    }

    match named(&[("unknown", &unknown), ("incomplete", &incomplete)]) {
        text if text.is_empty() => ConditionValue::yes(),
        // Once initialized a pod stays so, even if its init containers run again.
        _ if was_initialized(inputs) => ConditionValue::yes(),
        text => ConditionValue::no("ContainersNotInitialized", text),
    }
}

fn was_initialized(inputs: &StatusInputs<'_>) -> bool {
    let mut before = inputs.before.conditions.iter().flatten();
    before.any(|condition| condition.type_ == "Initialized" && condition.status == "True")
}

/// `containers with unready status: [a b]`
fn named(lists: &[(&str, &[&str])]) -> String {
    let texts = lists.iter().filter(|(_, names)| !names.is_empty());
    let texts =
        texts.map(|(what, names)| format!("containers with {what} status: [{}]", names.join(" ")));
    texts.collect::<Vec<_>>().join(", ")
}

/// A terminated pod is not ready.
pub(super) fn clear_ready_when_terminated(status: &mut PodStatus) {
    if !is_terminal(status.phase.as_deref()) {
        return;
    }

    let reason = if status.phase.as_deref() == Some("Failed") {
        "PodFailed"
    } else {
        "PodCompleted"
    };

    for condition in status.conditions.iter_mut().flatten() {
        if matches!(condition.type_.as_str(), "Ready" | "ContainersReady")
            && condition.status == "True"
        {
            condition.status = "False".to_owned();
            condition.reason = Some(reason.to_owned());
            condition.message = None;
        }
    }
}
