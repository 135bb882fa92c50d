//! The container statuses of a pod, exactly as upstream's.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, ContainerUser, LinuxContainerUser, VolumeMountStatus,
};

use super::{Facts, time};
use crate::actions::restart::wants_start;
use crate::observed::{Observed, Seen, State};
use crate::pod::{Kind, PodView, of_ephemeral};

/// Statuses of main containers, sorted by name, as clients expect.
pub(super) fn main(facts: &Facts<'_>) -> Option<Vec<ContainerStatus>> {
    let before = facts
        .before
        .container_statuses
        .as_deref()
        .unwrap_or_default();
    let mut all = of_kind(facts, Kind::Main, &facts.pod.pod_spec().containers, before);
    all.iter_mut().for_each(|status| probed(facts, status));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Some(all).filter(|all| !all.is_empty())
}

/// Statuses of init containers, in the order of the spec.
pub(super) fn init(facts: &Facts<'_>) -> Option<Vec<ContainerStatus>> {
    let before = facts
        .before
        .init_container_statuses
        .as_deref()
        .unwrap_or_default();

    let specs = facts
        .pod
        .pod_spec()
        .init_containers
        .as_deref()
        .unwrap_or_default();

    let mut all = of_kind(facts, Kind::Init, specs, before);
    for (status, spec) in all.iter_mut().zip(specs) {
        if spec.restart_policy.as_deref() == Some("Always") {
            probed(facts, status);
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

pub(super) fn ephemeral(facts: &Facts<'_>) -> Option<Vec<ContainerStatus>> {
    let before = facts
        .before
        .ephemeral_container_statuses
        .as_deref()
        .unwrap_or_default();

    let specs: Vec<Container> = facts
        .pod
        .ephemeral_containers()
        .iter()
        .map(of_ephemeral)
        .collect();
    let mut all = of_kind(facts, Kind::Ephemeral, &specs, before);
    all.sort_by(|one, other| one.name.cmp(&other.name));

    Some(all).filter(|all| !all.is_empty())
}

/// Applies probe results to a running container.
fn probed(facts: &Facts<'_>, status: &mut ContainerStatus) {
    let running = status
        .state
        .as_ref()
        .is_some_and(|state| state.running.is_some());
    let started = running && !facts.verdicts.not_started.contains(&status.name);
    status.started = Some(started);
    status.ready = started && !facts.verdicts.not_ready.contains(&status.name);
}

fn of_kind(
    facts: &Facts<'_>,
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
        .map(|spec| one(facts, kind, spec, before.get(spec.name.as_str()).copied()))
        .collect()
}

fn one(
    facts: &Facts<'_>,
    kind: Kind,
    spec: &Container,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let newest = facts.observed.newest(&spec.name);
    let mut status = match newest {
        Some(seen) => of_seen(facts, spec, seen, before),
        None => of_nothing(facts, spec, before),
    };

    let forgotten = kind == Kind::Init && spec.restart_policy.is_none() && newest.is_none();
    let waits = status
        .state
        .as_ref()
        .is_some_and(|state| state.waiting.is_some());

    if kind == Kind::Init && newest.is_some_and(has_succeeded) {
        return status;
    }

    if forgotten && waits && main_was_made(facts) {
        status.state = terminated(ContainerStateTerminated {
            reason: Some("Completed".to_owned()),
            message: Some(FORGOTTEN.to_owned()),
            exit_code: 0,
            ..Default::default()
        });
        return status;
    }

    if let Some(waiting) = facts
        .waiting
        .get(&spec.name)
        .filter(|_| wants_start(facts.pod, spec, facts.observed))
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

const FORGOTTEN: &str = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally";

/// The status by the newest instance and the one before it.
fn of_seen(
    facts: &Facts<'_>,
    spec: &Container,
    seen: &Seen,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let mut status = ContainerStatus {
        name: spec.name.clone(),
        image: seen.image.clone(),
        image_id: seen.image_ref.clone(),
        container_id: Some(id(facts, seen)),
        restart_count: i32::try_from(seen.restarts()).unwrap_or(i32::MAX),
        state: Some(state(facts, seen)),
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

    let previous = facts
        .observed
        .previous(&spec.name)
        .map(|seen| state(facts, seen));

    // An instance that was removed is known from the previous status.
    let told = before.and_then(|before| {
        let ended = before
            .state
            .clone()
            .filter(|state| state.terminated.is_some());
        let other = before.container_id != status.container_id;
        ended
            .filter(|_| other)
            .or_else(|| before.last_state.clone())
    });
    status.last_state = Some(previous.or(told).unwrap_or_default());

    status
}

/// A container that the runtime does not have: not created yet, or removed.
fn of_nothing(
    facts: &Facts<'_>,
    spec: &Container,
    before: Option<&ContainerStatus>,
) -> ContainerStatus {
    let has_init = facts
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
        if !facts.pod.is_being_deleted() {
            status.restart_count += 1;
        }
    }

    status
}

fn state(facts: &Facts<'_>, seen: &Seen) -> ContainerState {
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
                container_id: Some(id(facts, seen)),
                signal: None,
            }),
            ..ContainerState::default()
        },
        State::Created | State::Unknown => waiting_for("", ""),
    }
}

fn id(facts: &Facts<'_>, seen: &Seen) -> String {
    format!("{}://{}", facts.runtime, seen.id)
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

fn has_succeeded(seen: &Seen) -> bool {
    matches!(seen.state, State::Exited { code: 0, .. })
}

fn main_was_made(facts: &Facts<'_>) -> bool {
    let observed: &Observed = facts.observed;
    facts
        .pod
        .pod_spec()
        .containers
        .iter()
        .any(|container| observed.newest(&container.name).is_some())
}
