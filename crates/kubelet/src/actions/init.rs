//! Plans the init containers of a pod.
//!
//! Ordinary init containers run one after the other, each to success; sidecars start in the same
//! order and keep running. Progress is derived from the *last* container that was created: those
//! before it have completed, whether or not the runtime still lists them. Once a main container has
//! been created, all have completed.

use k8s_openapi::api::core::v1::{Container, Pod};

use super::restart::{restarts_after, restarts_when_killed};
use super::{Kill, ProbeVerdicts, check_running, kill_unknown};
use crate::observed::{Observed, ObservedContainer, State};
use crate::pod::{Kind, PodView};

/// What to do with init containers and sidecars.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) start: Vec<String>,
    pub(super) kill: Vec<Kill>,
    /// Main containers may start.
    pub(super) done: bool,
    /// An init container failed and must not be restarted: the pod has failed.
    pub(super) failed: bool,
}

pub(super) fn plan(pod: &Pod, observed: &Observed, verdicts: &ProbeVerdicts) -> Plan {
    let containers: Vec<(Kind, &Container)> = pod
        .lasting_containers()
        .filter(|(kind, _)| *kind != Kind::Main)
        .collect();

    let alive =
        |seen: &ObservedContainer| matches!(seen.state, State::Created | State::Running { .. });
    let main_began = pod
        .pod_spec()
        .containers
        .iter()
        .any(|container| observed.newest(&container.name).is_some_and(alive));

    let mut plan = Plan {
        done: containers.is_empty() || main_began,
        ..Plan::default()
    };

    let last = containers
        .iter()
        .rposition(|(_, container)| observed.newest(&container.name).is_some());
    let completed = match last {
        _ if main_began => containers.len(),
        Some(last) => last,
        None => {
            plan.start.extend(
                containers
                    .first()
                    .map(|(_, container)| container.name.clone()),
            );
            return plan;
        }
    };

    for (kind, container) in &containers[..completed] {
        if *kind == Kind::Sidecar {
            keep_sidecar(&mut plan, pod, container, observed, verdicts);
        }
    }

    if let Some((kind, container)) = containers.get(completed) {
        let next = containers
            .get(completed + 1)
            .map(|(_, container)| container.name.as_str());

        let seen = observed
            .newest(&container.name)
            .expect("`last` was found by this lookup");
        match kind {
            Kind::Sidecar => step_sidecar(&mut plan, pod, container, seen, next, verdicts),
            _ => step_ordinary(&mut plan, pod, container, seen, next),
        }
    }

    plan
}

/// A sidecar that has started before: it is restarted if it does not run or is unhealthy.
fn keep_sidecar(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    observed: &Observed,
    verdicts: &ProbeVerdicts,
) {
    let newest = observed.newest(&container.name);
    match newest {
        Some(seen) if seen.state.is_running() => {
            if let Some(unhealthy) = check_running(pod, Kind::Sidecar, container, seen, verdicts) {
                plan.kill.push(unhealthy.kill);
                plan.start.push(container.name.clone());
            }
        }
        _ => {
            plan.kill.extend(newest.and_then(kill_unknown));
            plan.start.push(container.name.clone());
        }
    }
}

/// The sidecar that must have started before the next container may start.
fn step_sidecar(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    seen: &ObservedContainer,
    next: Option<&str>,
    verdicts: &ProbeVerdicts,
) {
    let restart = |plan: &mut Plan| plan.start.push(container.name.clone());
    match &seen.state {
        State::Running { .. } => {
            let unhealthy = check_running(pod, Kind::Sidecar, container, seen, verdicts);
            let started = !verdicts.not_started.contains(&container.name)
                && unhealthy
                    .as_ref()
                    .is_none_or(|unhealthy| unhealthy.kill.probe.is_none());

            if let Some(unhealthy) = unhealthy {
                plan.kill.push(unhealthy.kill);
                restart(plan);
            }

            if started {
                match next {
                    Some(next) => plan.start.push(next.to_owned()),
                    None => plan.done = true,
                }
            }
        }
        State::Created | State::Exited { .. } => restart(plan),
        State::Unknown => {
            plan.kill.extend(kill_unknown(seen));
            restart(plan);
        }
    }
}

/// The ordinary init container that must succeed before the next container may start.
fn step_ordinary(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    seen: &ObservedContainer,
    next: Option<&str>,
) {
    match &seen.state {
        State::Running { .. } => {}
        State::Created => plan.start.push(container.name.clone()),
        State::Exited { code, reason, .. } if *code != 0 || reason == "OOMKilled" => {
            // An OOM kill is a failure, whatever the exit code of the first process.
            match restarts_after(pod, container, *code) {
                true => plan.start.push(container.name.clone()),
                false => plan.failed = true,
            }
        }
        State::Exited { .. } => match next {
            Some(next) => plan.start.push(next.to_owned()),
            None => plan.done = true,
        },
        State::Unknown if restarts_when_killed(pod, container) => {
            plan.kill.extend(kill_unknown(seen));
            plan.start.push(container.name.clone());
        }
        State::Unknown => plan.failed = true,
    }

    if plan.failed {
        plan.start.clear();
    }
}
