//! The phase of a pod.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};

use super::StatusInputs;
use crate::actions::restart::restarts_after;
use crate::observed::State;
use crate::pod::{Kind, PodView};

/// The state of one container for the phase.
enum ContainerPhase {
    Running,
    /// Exited with this code.
    Stopped(i32),
    /// Never started.
    Waiting,
    Unknown,
}

#[derive(Default)]
struct Count {
    unknown: usize,
    running: usize,
    waiting: usize,
    stopped: usize,
    succeeded: usize,
    /// Stopped and not restarted.
    final_: usize,
    init_pending: usize,
    sidecars_pending: usize,
    init_failed: usize,
}

/// The phase by the states of the containers.
pub(super) fn of(inputs: &StatusInputs<'_>, status: &PodStatus) -> &'static str {
    let count = count(inputs, status);
    if count.init_failed > 0 {
        return "Failed";
    }

    // A restarting sidecar does not take a running pod back to Pending.
    let initializing =
        count.init_pending > 0 || (count.sidecars_pending > 0 && !main_has_started(inputs));
    if initializing || count.waiting > 0 {
        return "Pending";
    }

    if count.running > 0 && count.unknown == 0 {
        return "Running";
    }
    if count.running > 0 || count.stopped == 0 || count.unknown > 0 {
        return "Pending";
    }

    let is_static = inputs
        .pod
        .annotation("kubernetes.io/config.source")
        .is_some_and(|source| source != "api");

    let all_done = count.stopped == count.final_ || (inputs.is_finished && !is_static);
    match (all_done, count.stopped == count.succeeded) {
        (false, _) => "Running",
        (true, true) => "Succeeded",
        (true, false) => "Failed",
    }
}

fn count(inputs: &StatusInputs<'_>, status: &PodStatus) -> Count {
    let mut count = Count::default();
    for (kind, container) in inputs.pod.lasting_containers() {
        let found = of_name(status, &container.name);
        let phase = found.map_or(ContainerPhase::Unknown, phase_of);
        match kind {
            Kind::Init => count_init(inputs, &mut count, container, &phase),
            Kind::Sidecar => {
                let started = found.and_then(|found| found.started).unwrap_or_default();
                count_sidecar(&mut count, &phase, started);
            }
            _ => count_main(inputs, &mut count, container, &phase, found),
        }
    }

    count
}

fn count_init(
    inputs: &StatusInputs<'_>,
    count: &mut Count,
    container: &Container,
    phase: &ContainerPhase,
) {
    match phase {
        ContainerPhase::Stopped(0) => {}
        ContainerPhase::Stopped(code) if !restarts_after(inputs.pod, container, *code) => {
            count.init_failed += 1
        }
        ContainerPhase::Stopped(_) => {}
        ContainerPhase::Running | ContainerPhase::Waiting | ContainerPhase::Unknown => {
            count.init_pending += 1
        }
    }
}

fn count_sidecar(count: &mut Count, phase: &ContainerPhase, started: bool) {
    match phase {
        ContainerPhase::Running => {
            count.running += 1;
            count.sidecars_pending += usize::from(!started);
        }
        // An exited sidecar does not count.
        ContainerPhase::Stopped(_) => {}
        ContainerPhase::Waiting => {
            count.waiting += 1;
            count.sidecars_pending += 1;
        }
        ContainerPhase::Unknown => {
            count.unknown += 1;
            count.sidecars_pending += 1;
        }
    }
}

fn count_main(
    inputs: &StatusInputs<'_>,
    count: &mut Count,
    container: &Container,
    phase: &ContainerPhase,
    found: Option<&ContainerStatus>,
) {
    match phase {
        ContainerPhase::Running => count.running += 1,
        ContainerPhase::Stopped(code) => {
            count.stopped += 1;
            count.final_ += usize::from(!restarts_after(inputs.pod, container, *code));
            // A container that waits for a restart has not succeeded, whatever its last exit code.
            let ended = found.and_then(|found| found.state.as_ref()?.terminated.as_ref());
            count.succeeded += usize::from(ended.is_some_and(|end| end.exit_code == 0));
        }
        ContainerPhase::Waiting => count.waiting += 1,
        ContainerPhase::Unknown => count.unknown += 1,
    }
}

fn phase_of(status: &ContainerStatus) -> ContainerPhase {
    let Some(state) = &status.state else {
        return ContainerPhase::Unknown;
    };
    let last = status
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());

    match (&state.running, &state.terminated, &state.waiting, last) {
        (Some(_), _, _, _) => ContainerPhase::Running,
        (_, Some(end), _, _) | (_, _, Some(_), Some(end)) => ContainerPhase::Stopped(end.exit_code),
        (_, _, Some(_), None) => ContainerPhase::Waiting,
        (None, None, None, _) => ContainerPhase::Unknown,
    }
}

fn of_name<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    let main = status.container_statuses.iter().flatten();
    main.chain(status.init_container_statuses.iter().flatten())
        .find(|status| status.name == name)
}

/// Whether a main container has started in the current sandbox.
fn main_has_started(inputs: &StatusInputs<'_>) -> bool {
    let Some(sandbox) = inputs.observed.ready_sandbox() else {
        return false;
    };
    inputs.pod.pod_spec().containers.iter().any(|container| {
        inputs.observed.newest(&container.name).is_some_and(|seen| {
            seen.created >= sandbox.created && !matches!(seen.state, State::Created)
        })
    })
}
