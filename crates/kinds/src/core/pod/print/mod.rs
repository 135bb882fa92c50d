//! The row of a Pod: the state of its containers, in one word.
//!
//! The phase is not specific, so the reason comes from what fails or is in progress: first the init
//! containers, and once these are done, the others. Restarts are counted for the same containers.
//! Deletion takes precedence.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus,
};

use crate::print::cells::{NONE, age, moment, name, or};
use crate::print::{Completed, Row};

pub(super) fn print_row(pod: &Pod, now: Timestamp) -> Row {
    let seen = summarize(pod);
    let spec = pod.spec.as_ref();
    let status = pod.status.as_ref();
    let sidecars = init_containers(pod).filter(|(_, sidecar)| *sidecar).count();
    let total = spec.map_or(0, |spec| spec.containers.len()) + sidecars;

    let address = status.and_then(|status| status.pod_ips.as_ref()?.first());
    let mut row = row![
        name(&pod.metadata),
        format!("{}/{total}", seen.ready),
        last_word(pod, &seen.reason),
        seen.restarts.show(now),
        age(&pod.metadata, now),
        or(address.map(|address| address.ip.as_str()), NONE),
        or(spec.and_then(|spec| spec.node_name.as_deref()), NONE),
        or(
            status.and_then(|status| status.nominated_node_name.as_deref()),
            NONE
        ),
        readiness_gates(pod)
    ];

    row.completed = match phase(pod) {
        "Succeeded" => Some(Completed {
            reason: "Succeeded",
            message: "The pod has completed successfully.",
        }),
        "Failed" => Some(Completed {
            reason: "Failed",
            message: "The pod failed.",
        }),
        _ => None,
    };

    row
}

/// The summary of a pod's containers.
struct Summary {
    reason: String,
    ready: usize,
    restarts: Restarts,
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i32,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &ContainerStatus) {
        self.count += container.restart_count;
        let before = container
            .last_state
            .as_ref()
            .and_then(|state| state.terminated.as_ref());
        let ended = before
            .and_then(|ended| ended.finished_at.as_ref())
            .map(|time| moment(&time.0));
        self.last = self.last.max(ended);
    }

    /// `3 (5m ago)`.
    fn show(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, now.since(last).human())
            }
            _ => self.count.to_string(),
        }
    }
}

fn summarize(pod: &Pod) -> Summary {
    let status = pod.status.as_ref();
    let progress = init_progress(pod);

    let initialized = condition(status, "Initialized") == Some("True");
    let mut seen = match progress.held_up {
        Some(reason) if !initialized => {
            return Summary {
                reason,
                ready: progress.ready,
                restarts: progress.restarts,
            };
        }
        held_up => Summary {
            reason: held_up.unwrap_or_else(|| pod_reason(pod)),
            ready: progress.ready,
            restarts: progress.of_sidecars,
        },
    };

    let (mut running, mut failed) = (false, None);

    // The first container takes precedence, so they are visited from the end.
    for container in status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten())
        .rev()
    {
        seen.restarts.add(container);
        let state = container.state.as_ref();
        if let Some(reason) = state.and_then(waits_for) {
            seen.reason = reason.to_string();
        } else if let Some(terminated) = state.and_then(|state| state.terminated.as_ref()) {
            seen.reason = ended(terminated);
            if terminated.exit_code != 0 {
                failed = Some(seen.reason.clone());
            }
        } else if container.ready && state.is_some_and(|state| state.running.is_some()) {
            running = true;
            seen.ready += 1;
        }
    }

    if seen.reason == "Completed" {
        // A pod with one completed container need not be completed.
        let ready = status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");

        seen.reason = match failed {
            _ if running && ready => "Running".to_string(),
            Some(failed) => failed,
            None if running => "NotReady".to_string(),
            None => seen.reason,
        };
    }

    seen
}

/// The progress of the init containers.
#[derive(Default)]
struct InitProgress {
    /// Why the pod is still initializing; absent: it is not.
    held_up: Option<String>,
    ready: usize,
    restarts: Restarts,
    of_sidecars: Restarts,
}

fn init_progress(pod: &Pod) -> InitProgress {
    let mut progress = InitProgress::default();
    let total = init_containers(pod).count();
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.init_container_statuses.iter().flatten());

    for (place, container) in statuses.enumerate() {
        let sidecar = init_containers(pod).any(|(name, sidecar)| sidecar && name == container.name);
        progress.restarts.add(container);

        if sidecar {
            progress.of_sidecars.add(container);
        }

        let state = container.state.as_ref();
        let terminated = state.and_then(|state| state.terminated.as_ref());
        if terminated.is_some_and(|terminated| terminated.exit_code == 0) {
            continue;
        }

        if sidecar && container.started == Some(true) {
            progress.ready += usize::from(container.ready);
            continue;
        }

        progress.held_up = Some(match (terminated, state.and_then(waits_for)) {
            (Some(terminated), _) => format!("Init:{}", ended(terminated)),
            (None, Some(reason)) if reason != "PodInitializing" => format!("Init:{reason}"),
            (None, _) => format!("Init:{place}/{total}"),
        });

        break;
    }

    progress
}

/// Names of the init containers, and whether each is a sidecar.
fn init_containers(pod: &Pod) -> impl Iterator<Item = (&str, bool)> {
    let containers = pod
        .spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten());
    containers.map(|c| {
        (
            c.name.as_str(),
            c.restart_policy.as_deref() == Some("Always"),
        )
    })
}

fn waits_for(state: &ContainerState) -> Option<&str> {
    state
        .waiting
        .as_ref()?
        .reason
        .as_deref()
        .filter(|reason| !reason.is_empty())
}

fn ended(terminated: &ContainerStateTerminated) -> String {
    match (terminated.reason.as_deref(), terminated.signal) {
        (Some(reason), _) if !reason.is_empty() => reason.to_string(),
        (_, Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", terminated.exit_code),
    }
}

fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

/// The reason of the pod itself, without its containers.
fn pod_reason(pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());

    let gated = conditions.any(|condition| {
        condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("SchedulingGated")
    });
    if gated {
        return "SchedulingGated".to_string();
    }

    or(
        status.and_then(|status| status.reason.as_deref()),
        phase(pod),
    )
    .to_string()
}

fn last_word<'a>(pod: &Pod, reason: &'a str) -> &'a str {
    let lost = pod
        .status
        .as_ref()
        .and_then(|status| status.reason.as_deref())
        == Some("NodeLost");
    let over = matches!(phase(pod), "Succeeded" | "Failed");
    match &pod.metadata.deletion_timestamp {
        Some(_) if lost => "Unknown",
        Some(_) if !over => "Terminating",
        _ => reason,
    }
}

fn condition<'a>(status: Option<&'a PodStatus>, kind: &str) -> Option<&'a str> {
    let mut conditions = status?.conditions.iter().flatten();
    conditions
        .find(|condition| condition.type_ == kind)
        .map(|condition| condition.status.as_str())
}

fn readiness_gates(pod: &Pod) -> String {
    let gates = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.readiness_gates.as_deref())
        .unwrap_or_default();

    let open = |kind: &str| condition(pod.status.as_ref(), kind) == Some("True");
    match gates.len() {
        0 => NONE.to_string(),
        total => format!(
            "{}/{total}",
            gates
                .iter()
                .filter(|gate| open(&gate.condition_type))
                .count()
        ),
    }
}

#[cfg(test)]
mod tests;
