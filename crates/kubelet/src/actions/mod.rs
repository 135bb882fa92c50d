//! Decides what to do with the containers of a pod.
//!
//! [`pod_actions`] gets the pod, its state in the runtime and the probe results, and returns the
//! actions: whether the pod needs a new sandbox, which containers to kill and which to start. It
//! depends on the current state only, so it may run at any time and any number of times.
//!
//! The sandbox comes first ([`sandbox_plan`]): without a usable one, the pod starts from the
//! beginning. Otherwise init containers advance by a step ([`init`]), and main containers follow
//! once init containers have completed.

mod init;
pub mod restart;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::observed::{Observed, ObservedContainer, State};
use crate::pod::{Kind, PodView};
use crate::probes::ProbeKind;
use crate::spec::labels::hash_of;
use restart::{must_start, restarts_when_killed};

/// Probe results of a pod's containers. A container without an entry is healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeVerdicts {
    /// Instances to kill, by container ID.
    pub failed: BTreeMap<String, ProbeKind>,
    /// Containers that have not started yet, by name.
    pub not_started: BTreeSet<String>,
    /// Containers that are not ready, by name.
    pub not_ready: BTreeSet<String>,
}

/// The actions, in the order of execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Stop all containers and the sandbox.
    pub kill_pod: bool,
    /// Containers to kill while the pod keeps running.
    pub kill: Vec<Kill>,
    /// Create a sandbox.
    pub create_sandbox: bool,
    /// The attempt number of the sandbox.
    pub attempt: u32,
    /// The newest existing sandbox, ready or not.
    pub sandbox: Option<String>,
    pub start_ephemeral: Vec<String>,
    /// Init containers and sidecars.
    pub start_init: Vec<String>,
    pub start_main: Vec<String>,
}

impl Actions {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let starts = [&self.start_ephemeral, &self.start_init, &self.start_main];
        !self.kill_pod
            && !self.create_sandbox
            && self.kill.is_empty()
            && starts.iter().all(|names| names.is_empty())
    }
}

/// A container to kill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    pub id: String,
    pub name: String,
    /// The text of the event.
    pub message: String,
    /// The probe whose `terminationGracePeriodSeconds` applies.
    pub probe: Option<ProbeKind>,
}

/// Computes the actions for a pod. Pure.
pub fn pod_actions(pod: &Pod, observed: &Observed, verdicts: &ProbeVerdicts) -> Actions {
    let plan = sandbox_plan(pod, observed);
    let actions = Actions {
        kill_pod: plan.create,
        create_sandbox: plan.create,
        attempt: plan.attempt,
        sandbox: plan.existing,
        ..Actions::default()
    };

    if plan.create {
        actions_without_sandbox(pod, observed, actions)
    } else {
        actions_in_sandbox(pod, observed, verdicts, actions)
    }
}

/// What to do about a pod's sandbox.
pub struct SandboxPlan {
    pub create: bool,
    pub attempt: u32,
    pub existing: Option<String>,
}

/// Whether a pod needs a new sandbox: it has none, several, one that is not ready, or one on the
/// wrong network.
pub fn sandbox_plan(pod: &Pod, observed: &Observed) -> SandboxPlan {
    let Some(newest) = observed.sandboxes.first() else {
        return SandboxPlan {
            create: true,
            attempt: 0,
            existing: None,
        };
    };

    let several = observed
        .sandboxes
        .iter()
        .filter(|sandbox| sandbox.ready)
        .count()
        > 1;

    let moved = newest.host_network != pod.is_host_network();
    let unreachable = !pod.is_host_network() && newest.addresses.is_empty();
    let create = several || !newest.ready || moved || unreachable;

    SandboxPlan {
        create,
        attempt: if create {
            newest.attempt + 1
        } else {
            newest.attempt
        },
        existing: Some(newest.id.clone()),
    }
}

/// A pod without a usable sandbox: everything is stopped and starts again with the first container,
/// if there is anything left to run.
fn actions_without_sandbox(pod: &Pod, observed: &Observed, mut actions: Actions) -> Actions {
    let has_run = actions.attempt != 0 && !observed.containers.is_empty();
    if pod.restart_policy() == "Never" && has_run {
        // It has run once and must not run again.
        actions.create_sandbox = false;
        return actions;
    }

    let spec = pod.pod_spec();
    let done = |container: &&Container| {
        let policy = container
            .restart_policy
            .as_deref()
            .unwrap_or(pod.restart_policy());
        policy == "OnFailure" && has_succeeded(observed, &container.name)
    };

    let main: Vec<String> = spec
        .containers
        .iter()
        .filter(|container| !done(container))
        .map(|container| container.name.clone())
        .collect();

    let was_initialized = spec
        .containers
        .iter()
        .any(|container| observed.newest(&container.name).is_some());

    if main.is_empty() && was_initialized {
        actions.create_sandbox = false;
        return actions;
    }

    match spec.init_containers.iter().flatten().next() {
        Some(first) => actions.start_init.push(first.name.clone()),
        None => actions.start_main = main,
    }

    actions
}

/// A pod with a usable sandbox.
fn actions_in_sandbox(
    pod: &Pod,
    observed: &Observed,
    verdicts: &ProbeVerdicts,
    mut actions: Actions,
) -> Actions {
    // Ephemeral containers may start during initialization, and never restart.
    let new = pod
        .ephemeral_containers()
        .iter()
        .filter(|one| observed.newest(&one.name).is_none());
    actions.start_ephemeral = new.map(|one| one.name.clone()).collect();

    let init = init::plan(pod, observed, verdicts);
    actions.start_init = init.start;
    actions.kill = init.kill;

    if init.failed {
        actions.kill_pod = true;
        return actions;
    }

    if !init.done {
        return actions;
    }

    let mut kept = 0;
    for container in &pod.pod_spec().containers {
        let newest = observed.newest(&container.name);
        match newest {
            Some(seen) if seen.state.is_running() => {
                match check_running(pod, Kind::Main, container, seen, verdicts) {
                    None => kept += 1,
                    Some(unhealthy) => {
                        if unhealthy.restart {
                            actions.start_main.push(container.name.clone());
                        }
                        actions.kill.push(unhealthy.kill);
                    }
                }
            }
            _ if must_start(pod, container, observed) => {
                actions.kill.extend(newest.and_then(kill_unknown));
                actions.start_main.push(container.name.clone());
            }
            _ => {}
        }
    }

    if kept == 0 && actions.start_main.is_empty() {
        actions.kill_pod = true;
        // Sidecars alone do not keep a pod running.
        actions.start_init.clear();
    }

    actions
}

/// A running container that must be killed.
pub(crate) struct Unhealthy {
    kill: Kill,
    restart: bool,
}

/// Whether a running container must be killed: its definition has changed, or a probe has failed.
pub(crate) fn check_running(
    pod: &Pod,
    kind: Kind,
    container: &Container,
    seen: &ObservedContainer,
    verdicts: &ProbeVerdicts,
) -> Option<Unhealthy> {
    let what = if kind == Kind::Main {
        "Container"
    } else {
        "Init container"
    };

    let name = &container.name;
    let changed = seen.hash().is_some_and(|hash| hash != hash_of(container));
    let (message, probe, restart) = match (changed, verdicts.failed.get(&seen.id)) {
        (true, _) => (format!("{what} {name} definition changed"), None, true),
        (false, Some(ProbeKind::Liveness)) => {
            let restart = restarts_when_killed(pod, container);
            (
                format!("{what} {name} failed liveness probe"),
                Some(ProbeKind::Liveness),
                restart,
            )
        }
        (false, Some(ProbeKind::Startup)) => {
            let restart = restarts_when_killed(pod, container);
            (
                format!("{what} {name} failed startup probe"),
                Some(ProbeKind::Startup),
                restart,
            )
        }
        (false, Some(ProbeKind::Readiness) | None) => return None,
    };

    let message = if restart && kind == Kind::Main {
        format!("{message}, will be restarted")
    } else {
        message
    };

    Some(Unhealthy {
        kill: Kill {
            id: seen.id.clone(),
            name: name.clone(),
            message,
            probe,
        },
        restart,
    })
}

/// An instance in an unknown state is killed before another one starts: otherwise two could run.
pub(crate) fn kill_unknown(seen: &ObservedContainer) -> Option<Kill> {
    (seen.state == State::Unknown).then(|| Kill {
        id: seen.id.clone(),
        name: seen.name.clone(),
        message: "Container is in \"unknown\" state, try killing it before restart".to_owned(),
        probe: None,
    })
}

fn has_succeeded(observed: &Observed, name: &str) -> bool {
    observed
        .newest(name)
        .is_some_and(|seen| matches!(seen.state, State::Exited { code: 0, .. }))
}
