//! The phase of a pod.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus};

use super::Facts;
use crate::actions::restart::restarts_after;
use crate::observed::State;
use crate::pod::{Kind, PodView};

/// The state of one container for the phase.
enum Stand {
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
pub(super) fn of(facts: &Facts<'_>, status: &PodStatus) -> &'static str {
    let count = count(facts, status);
    if count.init_failed > 0 {
        return "Failed";
    }

    // A restarting sidecar does not take a running pod back to Pending.
    let initializing =
        count.init_pending > 0 || (count.sidecars_pending > 0 && !main_has_begun(facts));
    if initializing || count.waiting > 0 {
        return "Pending";
    }

    if count.running > 0 && count.unknown == 0 {
        return "Running";
    }
    if count.running > 0 || count.stopped == 0 || count.unknown > 0 {
        return "Pending";
    }

    let is_static = facts
        .pod
        .annotation("kubernetes.io/config.source")
        .is_some_and(|source| source != "api");

    let all_done = count.stopped == count.final_ || (facts.is_over && !is_static);
    match (all_done, count.stopped == count.succeeded) {
        (false, _) => "Running",
        (true, true) => "Succeeded",
        (true, false) => "Failed",
    }
}

fn count(facts: &Facts<'_>, status: &PodStatus) -> Count {
    let mut count = Count::default();
    for (kind, container) in facts.pod.lasting_containers() {
        let found = of_name(status, &container.name);
        let stand = found.map_or(Stand::Unknown, stand);
        match kind {
            Kind::Init => count_init(facts, &mut count, container, &stand),
            Kind::Sidecar => {
                let started = found.and_then(|found| found.started).unwrap_or_default();
                count_sidecar(&mut count, &stand, started);
            }
            _ => count_main(facts, &mut count, container, &stand, found),
        }
    }

    count
}

fn count_init(facts: &Facts<'_>, count: &mut Count, container: &Container, stand: &Stand) {
    match stand {
        Stand::Stopped(0) => {}
        Stand::Stopped(code) if !restarts_after(facts.pod, container, *code) => {
            count.init_failed += 1
        }
        Stand::Stopped(_) => {}
        Stand::Running | Stand::Waiting | Stand::Unknown => count.init_pending += 1,
    }
}

fn count_sidecar(count: &mut Count, stand: &Stand, started: bool) {
    match stand {
        Stand::Running => {
            count.running += 1;
            count.sidecars_pending += usize::from(!started);
        }
        // An exited sidecar does not count.
        Stand::Stopped(_) => {}
        Stand::Waiting => {
            count.waiting += 1;
            count.sidecars_pending += 1;
        }
        Stand::Unknown => {
            count.unknown += 1;
            count.sidecars_pending += 1;
        }
    }
}

fn count_main(
    facts: &Facts<'_>,
    count: &mut Count,
    container: &Container,
    stand: &Stand,
    found: Option<&ContainerStatus>,
) {
    match stand {
        Stand::Running => count.running += 1,
        Stand::Stopped(code) => {
            count.stopped += 1;
            count.final_ += usize::from(!restarts_after(facts.pod, container, *code));
            // A container that waits for a restart has not succeeded, whatever its last exit code.
            let ended = found.and_then(|found| found.state.as_ref()?.terminated.as_ref());
            count.succeeded += usize::from(ended.is_some_and(|end| end.exit_code == 0));
        }
        Stand::Waiting => count.waiting += 1,
        Stand::Unknown => count.unknown += 1,
    }
}

fn stand(status: &ContainerStatus) -> Stand {
    let Some(state) = &status.state else {
        return Stand::Unknown;
    };
    let last = status
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());

    match (&state.running, &state.terminated, &state.waiting, last) {
        (Some(_), _, _, _) => Stand::Running,
        (_, Some(end), _, _) | (_, _, Some(_), Some(end)) => Stand::Stopped(end.exit_code),
        (_, _, Some(_), None) => Stand::Waiting,
        (None, None, None, _) => Stand::Unknown,
    }
}

fn of_name<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    let main = status.container_statuses.iter().flatten();
    main.chain(status.init_container_statuses.iter().flatten())
        .find(|status| status.name == name)
}

/// Whether a main container has started in the current sandbox.
fn main_has_begun(facts: &Facts<'_>) -> bool {
    let Some(sandbox) = facts.observed.ready_sandbox() else {
        return false;
    };
    facts.pod.pod_spec().containers.iter().any(|container| {
        facts.observed.newest(&container.name).is_some_and(|seen| {
            seen.created >= sandbox.created && !matches!(seen.state, State::Created)
        })
    })
}
