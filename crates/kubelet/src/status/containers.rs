//! The container statuses of a pod, exactly as upstream's.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, ContainerUser, LinuxContainerUser, VolumeMountStatus,
};

use super::{StatusInputs, time};
use crate::actions::restart::must_start;
use crate::observed::{Observed, ObservedContainer, State};
use crate::pod::{Kind, PodView, of_ephemeral};

/// Statuses of main containers, sorted by name, as clients expect.
pub(super) fn main(inputs: &StatusInputs<'_>) -> Option<Vec<ContainerStatus>> {
    let before = inputs
        .before
        .container_statuses
        .as_deref()
        .unwrap_or_default();
    let mut all = of_kind(
        inputs,
        Kind::Main,
        &inputs.pod.pod_spec().containers,
        before,
    );
    all.iter_mut()
        .for_each(|status| apply_probe_results(inputs, status));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Some(all).filter(|all| !all.is_empty())
}

/// Statuses of init containers, in the order of the spec.
pub(super) fn init(inputs: &StatusInputs<'_>) -> Option<Vec<ContainerStatus>> {
    let before = inputs
        .before
        .init_container_statuses
        .as_deref()
        .unwrap_or_default();

    let specs = inputs
        .pod
        .pod_spec()
        .init_containers
        .as_deref()
        .unwrap_or_default();

    let mut all = of_kind(inputs, Kind::Init, specs, before);
    for (status, spec) in all.iter_mut().zip(specs) {
        if spec.restart_policy.as_deref() == Some("Always") {
            apply_probe_results(inputs, status);
            continue;
        }

        let state = status.state.as_ref();
        status.started = Some(state.is_some_and(|state| state.running.is_some()));

        let succeeded = |state: &ContainerState| {
            state
                .terminated
                .as_ref()
                .is_some_and(|end| end.exit_code == 0)
        };
        status.ready = state.is_some_and(succeeded);
    }

    Some(all).filter(|all| !all.is_empty())
}

pub(super) fn ephemeral(inputs: &StatusInputs<'_>) -> Option<Vec<ContainerStatus>> {
    let before = inputs
        .before
        .ephemeral_container_statuses
        .as_deref()
        .unwrap_or_default();

    let specs: Vec<Container> = inputs
        .pod
        .ephemeral_containers()
        .iter()
        .map(of_ephemeral)
        .collect();
    let mut all = of_kind(inputs, Kind::Ephemeral, &specs, before);
    all.sort_by(|one, other| one.name.cmp(&other.name));

    Some(all).filter(|all| !all.is_empty())
}

/// Applies probe results to a running container.
fn apply_probe_results(inputs: &StatusInputs<'_>, status: &mut ContainerStatus) {
    let running = status
        .state
        .as_ref()
        .is_some_and(|state| state.running.is_some());
    let started = running && !inputs.verdicts.not_started.contains(&status.name);
    status.started = Some(started);
    status.ready = started && !inputs.verdicts.not_ready.contains(&status.name);
}

fn of_kind(
    inputs: &StatusInputs<'_>,
    kind: Kind,
    specs: &[Container],
    before: &[ContainerStatus],
) -> Vec<ContainerStatus> {
    let before: BTreeMap<&str, &ContainerStatus> = before
        .iter()
        .map(|status| (status.name.as_str(), status))
        .collect();
    specs
        .iter()
        .map(|spec| one(inputs, kind, spec, before.get(spec.name.as_str()).copied()))
        .collect()
}

fn one(
    inputs: &StatusInputs<'_>,
    kind: Kind,
    spec: &Container,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let newest = inputs.observed.newest(&spec.name);
    let mut status = match newest {
        Some(seen) => from_observed(inputs, spec, seen, before),
        None => from_previous(inputs, spec, before),
    };

    let is_missing = kind == Kind::Init && spec.restart_policy.is_none() && newest.is_none();
    let waits = status
        .state
        .as_ref()
        .is_some_and(|state| state.waiting.is_some());

    if kind == Kind::Init && newest.is_some_and(has_succeeded) {
        return status;
    }

    if is_missing && waits && main_was_created(inputs) {
        status.state = terminated(ContainerStateTerminated {
            reason: Some("Completed".to_owned()),
            message: Some(INIT_STATUS_LOST.to_owned()),
            exit_code: 0,
            ..Default::default()
        });
        return status;
    }

    if let Some(waiting) = inputs
        .waiting
        .get(&spec.name)
        .filter(|_| must_start(inputs.pod, spec, inputs.observed))
    {
        if let Some(state) = status
            .state
            .take()
            .filter(|state| state.terminated.is_some())
        {
            status.last_state = Some(state);
        }
        status.state = Some(waiting_for(waiting.reason, &waiting.message));
    }

    status
}

const INIT_STATUS_LOST: &str = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally";

/// The status by the newest instance and the one before it.
fn from_observed(
    inputs: &StatusInputs<'_>,
    spec: &Container,
    seen: &ObservedContainer,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let mut status = ContainerStatus {
        name: spec.name.clone(),
        image: seen.image.clone(),
        image_id: seen.image_ref.clone(),
        container_id: Some(id(inputs, seen)),
        restart_count: i32::try_from(seen.restarts()).unwrap_or(i32::MAX),
        state: Some(state(inputs, seen)),
        volume_mounts: mounts(spec),
        resources: Some(spec.resources.clone().unwrap_or_default()),
        allocated_resources: spec
            .resources
            .as_ref()
            .and_then(|resources| resources.requests.clone()),
        user: seen.user.as_ref().map(|user| ContainerUser {
            linux: Some(LinuxContainerUser {
                uid: user.uid,
                gid: user.gid,
                supplemental_groups: Some(user.groups.clone()).filter(|groups| !groups.is_empty()),
            }),
        }),
        ..ContainerStatus::default()
    };

    let running_before =
        |before: &&ContainerStatus| before.state.as_ref().is_some_and(|s| s.running.is_some());
    if let (State::Unknown, Some(before)) = (&seen.state, before.filter(running_before)) {
        status.state = terminated(lost(
            "The container could not be located when the pod was terminated",
        ));
        status.restart_count = before.restart_count + 1;
    }

    let previous = inputs
        .observed
        .previous(&spec.name)
        .map(|seen| state(inputs, seen));

    // An instance that was removed is known from the previous status.
    let inputs = before.and_then(|before| {
        let ended = before
            .state
            .clone()
            .filter(|state| state.terminated.is_some());
        let other = before.container_id != status.container_id;
        ended
            .filter(|_| other)
            .or_else(|| before.last_state.clone())
    });
    status.last_state = Some(previous.or(inputs).unwrap_or_default());

    status
}

/// A container that the runtime does not have: not created yet, or removed.
fn from_previous(
    inputs: &StatusInputs<'_>,
    spec: &Container,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let has_init = inputs
        .pod
        .pod_spec()
        .init_containers
        .iter()
        .flatten()
        .next()
        .is_some();

    let reason = if has_init {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };

    let mut status = ContainerStatus {
        name: spec.name.clone(),
        image: spec.image.clone().unwrap_or_default(),
        state: Some(waiting_for(reason, "")),
        last_state: Some(ContainerState::default()),
        volume_mounts: mounts(spec),
        ..ContainerStatus::default()
    };
    let Some(before) = before else { return status };

    let state_before = before.state.clone().unwrap_or_default();
    if state_before.terminated.is_some() {
        return before.clone();
    }

    status.restart_count = before.restart_count;
    status.last_state = Some(before.last_state.clone().unwrap_or_default());
    let has_end = before
        .last_state
        .as_ref()
        .is_some_and(|state| state.terminated.is_some());

    if state_before.running.is_some() && !has_end {
        // It ran and was lost: a waiting state would take the pod back to Pending.
        let text = "The container could not be located when the pod was deleted.  The container used to be Running";
        status.last_state = terminated(lost(text));
        if !inputs.pod.is_being_deleted() {
            status.restart_count += 1;
        }
    }

    status
}

fn state(inputs: &StatusInputs<'_>, seen: &ObservedContainer) -> ContainerState {
    match &seen.state {
        State::Running { since } => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(time(*since)),
            }),
            ..ContainerState::default()
        },
        State::Exited {
            started,
            finished,
            code,
            reason,
            message,
        } => ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: *code,
                reason: Some(reason.clone()).filter(|text| !text.is_empty()),
                message: Some(message.clone()).filter(|text| !text.is_empty()),
                started_at: Some(time(*started)),
                finished_at: Some(time(*finished)),
                container_id: Some(id(inputs, seen)),
                signal: None,
            }),
            ..ContainerState::default()
        },
        State::Created | State::Unknown => waiting_for("", ""),
    }
}

fn id(inputs: &StatusInputs<'_>, seen: &ObservedContainer) -> String {
    format!("{}://{}", inputs.runtime, seen.id)
}

fn waiting_for(reason: &str, message: &str) -> ContainerState {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let waiting = ContainerStateWaiting {
        reason: text(reason),
        message: text(message),
    };
    ContainerState {
        waiting: Some(waiting),
        ..ContainerState::default()
    }
}

fn terminated(end: ContainerStateTerminated) -> Option<ContainerState> {
    Some(ContainerState {
        terminated: Some(end),
        ..ContainerState::default()
    })
}

/// The terminated state of a lost container.
pub(crate) fn lost(message: &str) -> ContainerStateTerminated {
    ContainerStateTerminated {
        reason: Some("ContainerStatusUnknown".to_owned()),
        message: Some(message.to_owned()),
        exit_code: 137,
        ..Default::default()
    }
}

fn mounts(spec: &Container) -> Option<Vec<VolumeMountStatus>> {
    let mounts = spec.volume_mounts.as_ref()?.iter();
    Some(
        mounts
            .map(|mount| {
                let deep = match mount.recursive_read_only.as_deref() {
                    Some("Enabled" | "IfPossible") => "Enabled",
                    _ => "Disabled",
                };

                VolumeMountStatus {
                    name: mount.name.clone(),
                    mount_path: mount.mount_path.clone(),
                    read_only: mount.read_only,
                    recursive_read_only: mount
                        .read_only
                        .filter(|only| *only)
                        .map(|_| deep.to_owned()),
                    ..Default::default()
                }
            })
            .collect(),
    )
}

fn has_succeeded(seen: &ObservedContainer) -> bool {
    matches!(seen.state, State::Exited { code: 0, .. })
}

fn main_was_created(inputs: &StatusInputs<'_>) -> bool {
    let observed: &Observed = inputs.observed;
    inputs
        .pod
        .pod_spec()
        .containers
        .iter()
        .any(|container| observed.newest(&container.name).is_some())
}
