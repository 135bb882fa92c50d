//! How far init containers have come, and what is next.
//!
//! Ordinary ones run one after the other, each to success; sidecars begin in their place, and stay.
//! What has been done is read off the *last* one that was ever made: those before it were done,
//! whether or not the runtime still remembers them. Once a main container has begun, all were.

use k8s_openapi::api::core::v1::{Container, Pod};

use super::restart::{restarts_after, restarts_when_killed};
use super::{Kill, Verdicts, unknown, unwell};
use crate::observed::{Observed, Seen, State};
use crate::pod::{Kind, PodView};

/// What is next for init containers and sidecars.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) start: Vec<String>,
    pub(super) kill: Vec<Kill>,
    /// Main containers may run.
    pub(super) done: bool,
    /// One failed, and is not to be tried again: so has the pod.
    pub(super) failed: bool,
}

pub(super) fn plan(pod: &Pod, observed: &Observed, verdicts: &Verdicts) -> Plan {
    let containers: Vec<(Kind, &Container)> = pod
        .lasting_containers()
        .filter(|(kind, _)| *kind != Kind::Main)
        .collect();

    let alive = |seen: &Seen| matches!(seen.state, State::Created | State::Running { .. });
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
    let behind = match last {
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

    for (kind, container) in &containers[..behind] {
        if *kind == Kind::Sidecar {
            keep_sidecar(&mut plan, pod, container, observed, verdicts);
        }
    }

    if let Some((kind, container)) = containers.get(behind) {
        let next = containers
            .get(behind + 1)
            .map(|(_, container)| container.name.as_str());

        let seen = observed
            .newest(&container.name)
            .expect("it is the last one that was made");
        match kind {
            Kind::Sidecar => step_sidecar(&mut plan, pod, container, seen, next, verdicts),
            _ => step_ordinary(&mut plan, pod, container, seen, next),
        }
    }

    plan
}

/// A sidecar whose turn is over: it runs, or it is made to.
fn keep_sidecar(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    observed: &Observed,
    verdicts: &Verdicts,
) {
    let newest = observed.newest(&container.name);
    match newest {
        Some(seen) if seen.state.is_running() => {
            if let Some(unwell) = unwell(pod, Kind::Sidecar, container, seen, verdicts) {
                plan.kill.push(unwell.kill);
                plan.start.push(container.name.clone());
            }
        }
        _ => {
            plan.kill.extend(newest.and_then(unknown));
            plan.start.push(container.name.clone());
        }
    }
}

/// The sidecar that is to be up before the next one may begin.
fn step_sidecar(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    seen: &Seen,
    next: Option<&str>,
    verdicts: &Verdicts,
) {
    let again = |plan: &mut Plan| plan.start.push(container.name.clone());
    match &seen.state {
        State::Running { .. } => {
            let unwell = unwell(pod, Kind::Sidecar, container, seen, verdicts);
            let started = !verdicts.not_started.contains(&container.name)
                && unwell
                    .as_ref()
                    .is_none_or(|unwell| unwell.kill.probe.is_none());

            if let Some(unwell) = unwell {
                plan.kill.push(unwell.kill);
                again(plan);
            }

            if started {
                match next {
                    Some(next) => plan.start.push(next.to_owned()),
                    None => plan.done = true,
                }
            }
        }
        State::Created | State::Exited { .. } => again(plan),
        State::Unknown => {
            plan.kill.extend(unknown(seen));
            again(plan);
        }
    }
}

/// The ordinary one that is to succeed before the next one may begin.
fn step_ordinary(
    plan: &mut Plan,
    pod: &Pod,
    container: &Container,
    seen: &Seen,
    next: Option<&str>,
) {
    match &seen.state {
        State::Running { .. } => {}
        State::Created => plan.start.push(container.name.clone()),
        State::Exited { code, reason, .. } if *code != 0 || reason == "OOMKilled" => {
            // Killed for want of memory is a failure, whatever the first process made of it.
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
            plan.kill.extend(unknown(seen));
            plan.start.push(container.name.clone());
        }
        State::Unknown => plan.failed = true,
    }

    if plan.failed {
        plan.start.clear();
    }
}
