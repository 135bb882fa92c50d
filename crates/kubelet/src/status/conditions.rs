//! The conditions that the kubelet owns.

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition, PodStatus};

use super::{Facts, is_terminal, time};
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
struct Says {
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Says {
    fn yes() -> Says {
        Says {
            is_true: true,
            reason: "",
            message: String::new(),
        }
    }

    fn no(reason: &'static str, message: String) -> Says {
        Says {
            is_true: false,
            reason,
            message,
        }
    }
}

/// Sets the owned conditions, after those of others.
pub(super) fn set(facts: &Facts<'_>, status: &mut PodStatus) {
    let others = facts.pod.pod_status().conditions.iter().flatten();
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
    let sandbox = if sandbox_plan(facts.pod, facts.observed).create {
        Says::no("", String::new())
    } else {
        Says::yes()
    };

    let containers = containers_ready(facts, &of_containers, phase);
    let ready = match containers.is_true {
        true => gates(facts, &all),
        false => Says::no(containers.reason, containers.message.clone()),
    };

    let owned = [
        ("PodReadyToStartContainers", sandbox),
        ("Initialized", initialized(facts, &of_containers, phase)),
        ("Ready", ready),
        ("ContainersReady", containers),
        ("PodScheduled", Says::yes()),
    ];

    all.extend(
        owned
            .into_iter()
            .map(|(name, says)| condition(facts, name, says)),
    );

    status.conditions = Some(all);
}

fn condition(facts: &Facts<'_>, name: &str, says: Says) -> PodCondition {
    let status = if says.is_true { "True" } else { "False" };
    let before = facts
        .before
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == name);

    let same = before.filter(|before| before.status == status);
    PodCondition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: Some(says.reason.to_owned()).filter(|text| !text.is_empty()),
        message: Some(says.message).filter(|text| !text.is_empty()),
        last_transition_time: same
            .and_then(|before| before.last_transition_time.clone())
            .or_else(|| Some(time(facts.now))),
        last_probe_time: None,
        observed_generation: facts.pod.metadata.generation,
    }
}

fn containers_ready(facts: &Facts<'_>, statuses: &[ContainerStatus], phase: &str) -> Says {
    if statuses.is_empty() {
        return Says::no("UnknownContainerStatuses", String::new());
    }

    let (mut unknown, mut unready) = (Vec::new(), Vec::new());
    for (kind, container) in facts
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
        "Failed" => Says::no("PodFailed", String::new()),
        "Succeeded" if unknown.is_empty() => Says::no("PodCompleted", String::new()),
        _ => match named(&[("unknown", &unknown), ("unready", &unready)]) {
            text if text.is_empty() => Says::yes(),
            text => Says::no("ContainersNotReady", text),
        },
    }
}

/// Evaluates the readiness gates.
fn gates(facts: &Facts<'_>, others: &[PodCondition]) -> Says {
    let gates = facts.pod.pod_spec().readiness_gates.iter().flatten();
    let missing: Vec<String> = gates
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
        Says::yes()
    } else {
        Says::no("ReadinessGatesNotReady", missing.join(", "))
    }
}

fn initialized(facts: &Facts<'_>, statuses: &[ContainerStatus], phase: &str) -> Says {
    let specs = facts.pod.lasting_containers();
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
        return Says {
            reason: "PodCompleted",
            ..Says::yes()
        };
    }

    let began = |status: &ContainerStatus| {
        let is_main = facts
            .pod
            .pod_spec()
            .containers
            .iter()
            .any(|container| container.name == status.name);
        let state = status.state.as_ref();
        is_main && state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };

    if statuses.iter().any(began) {
        return Says::yes();
    }

    match named(&[("unknown", &unknown), ("incomplete", &incomplete)]) {
        text if text.is_empty() => Says::yes(),
        // Once initialized a pod stays so, even if its init containers run again.
        _ if was_initialized(facts) => Says::yes(),
        text => Says::no("ContainersNotInitialized", text),
    }
}

fn was_initialized(facts: &Facts<'_>) -> bool {
    let mut before = facts.before.conditions.iter().flatten();
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
pub(super) fn not_ready_when_over(status: &mut PodStatus) {
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
