//! Stops containers: preStop hook, signal, kill.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::PodWorker;
use super::sync::SyncError;
use crate::actions::Kill;
use crate::observed::Observed;
use crate::pod::{Kind, PodView};
use crate::probes::ProbeKind;

/// The least time between the signal and the kill.
const MIN_GRACE: Duration = Duration::from_secs(2);

/// The grace period of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grace(pub(super) Duration);

impl Grace {
    /// The pod's deletion takes precedence over the failed probe, and that over the pod's spec.
    pub(super) fn of(pod: &Pod, container: &Container, probe: Option<ProbeKind>) -> Grace {
        let of_probe = |probe: &Option<Probe>| probe.as_ref()?.termination_grace_period_seconds;
        let asked = match probe {
            Some(ProbeKind::Liveness) => of_probe(&container.liveness_probe),
            Some(ProbeKind::Startup) => of_probe(&container.startup_probe),
            Some(ProbeKind::Readiness) | None => None,
        };
        let seconds = pod.metadata.deletion_grace_period_seconds.or_else(|| {
            let of_pod = pod.pod_spec().termination_grace_period_seconds;
            asked.filter(|_| of_pod.is_some()).or(of_pod)
        });
        Grace::seconds(seconds.unwrap_or(2))
    }

    pub(super) fn seconds(seconds: i64) -> Grace {
        Grace(Duration::from_secs(
            u64::try_from(seconds).unwrap_or_default(),
        ))
    }
}

/// Termination order: sidecars stop after the main containers, the last of them first.
pub(super) struct TerminationOrder {
    remaining: watch::Sender<BTreeMap<usize, usize>>,
}

impl TerminationOrder {
    fn new(order: impl Iterator<Item = usize>) -> TerminationOrder {
        let mut remaining = BTreeMap::new();
        order.for_each(|position| *remaining.entry(position).or_default() += 1);
        TerminationOrder {
            remaining: watch::channel(remaining).0,
        }
    }

    /// Waits until all earlier containers have stopped, or the timeout.
    async fn wait(&self, position: usize, max_wait: Duration) {
        let mut remaining = self.remaining.subscribe();
        let free = |remaining: &BTreeMap<usize, usize>| {
            remaining.range(..position).all(|(_, count)| *count == 0)
        };
        // On a timeout it is this container's turn as well.
        timeout(max_wait, remaining.wait_for(free))
            .await
            .map(drop)
            .unwrap_or_default();
    }

    fn finished(&self, position: usize) {
        self.remaining.send_modify(|remaining| {
            if let Some(count) = remaining.get_mut(&position) {
                *count -= 1;
            }
        });
    }
}

fn position_of(pod: &Pod, name: &str) -> usize {
    let sidecars: Vec<&str> = pod
        .lasting_containers()
        .filter(|(kind, _)| *kind == Kind::Sidecar)
        .map(|(_, container)| container.name.as_str())
        .collect();
    sidecars
        .iter()
        .rev()
        .position(|sidecar| *sidecar == name)
        .map_or(0, |place| place + 1)
}

impl PodWorker {
    /// Stops all containers of a pod, and its sandboxes. `grace` overrides the pod's own grace
    /// period.
    pub(super) async fn kill_pod(
        &self,
        pod: &Arc<Pod>,
        observed: &Observed,
        grace: Option<Grace>,
    ) -> Result<(), SyncError> {
        let alive: Vec<_> = observed
            .containers
            .iter()
            .filter(|seen| seen.state.is_alive())
            .collect();
        let order = TerminationOrder::new(alive.iter().map(|seen| position_of(pod, &seen.name)));

        let addresses = observed
            .ready_sandbox()
            .map(|sandbox| sandbox.addresses.clone())
            .unwrap_or_default();

        let stops = alive.iter().map(|seen| {
            let (order, addresses) = (&order, &addresses);
            async move {
                // A container that the spec no longer has is stopped as a main container.
                let unknown = || {
                    (
                        Kind::Main,
                        Container {
                            name: seen.name.clone(),
                            ..Container::default()
                        },
                    )
                };
                let (kind, container) = pod.container(&seen.name).unwrap_or_else(unknown);
                let grace = grace.unwrap_or_else(|| Grace::of(pod, &container, None));

                let text = format!("Stopping container {}", seen.name);
                self.stop(
                    pod,
                    kind,
                    &container,
                    &seen.id,
                    &text,
                    grace,
                    addresses,
                    Some(order),
                )
                .await
            }
        });

        for stopped in join_all(stops).await {
            stopped?;
        }

        for sandbox in &observed.sandboxes {
            self.shared
                .host
                .runtime
                .stop_pod_sandbox(&sandbox.id)
                .await?;
        }

        Ok(())
    }

    /// Stops one container and leaves the rest of the pod running.
    pub(super) async fn kill_one(
        &self,
        pod: &Arc<Pod>,
        observed: &Observed,
        kill: &Kill,
    ) -> Result<(), SyncError> {
        let Some((kind, container)) = pod.container(&kill.name) else {
            return Ok(());
        };
        let grace = Grace::of(pod, &container, kill.probe);
        let addresses = observed
            .ready_sandbox()
            .map(|sandbox| sandbox.addresses.clone())
            .unwrap_or_default();

        self.stop(
            pod,
            kind,
            &container,
            &kill.id,
            &kill.message,
            grace,
            &addresses,
            None,
        )
        .await?;

        Ok(())
    }

    /// Runs the preStop hook, waits for the container's turn, and stops it.
    #[expect(
        clippy::too_many_arguments,
        reason = "all of them describe one container"
    )]
    pub(super) async fn stop(
        &self,
        pod: &Arc<Pod>,
        kind: Kind,
        container: &Container,
        id: &str,
        message: &str,
        grace: Grace,
        addresses: &[String],
        order: Option<&TerminationOrder>,
    ) -> Result<(), coracle_cri::Error> {
        let host = &self.shared.host;
        let about = pod.container_reference(kind, &container.name);
        host.events.normal(&about, "Killing", message);
        let until = Instant::now() + grace.0;
        let time_left = || until.saturating_duration_since(Instant::now());
        let hook = container
            .lifecycle
            .as_ref()
            .is_some_and(|lifecycle| lifecycle.pre_stop.is_some());

        if hook && !grace.0.is_zero() {
            let restarts = timeout(
                time_left(),
                self.shared
                    .hooks
                    .run_pre_stop(pod, container, id, addresses),
            )
            .await;

            if matches!(restarts, Ok(Err(_))) {
                host.events
                    .warning(&about, "FailedPreStopHook", "PreStopHook failed");
            }
        }

        let position = position_of(pod, &container.name);
        if let Some(order) = order {
            order.wait(position, time_left()).await;
        }

        let stopped = host
            .runtime
            .stop_container(id, time_left().max(MIN_GRACE))
            .await;

        if let Some(order) = order {
            order.finished(position);
        }

        match stopped {
            Err(coracle_cri::Error::NotFound(_)) => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn check(deletion: Option<i64>, of_pod: Option<i64>, of_probe: Option<i64>, seconds: i64) {
        let spec = PodSpec {
            termination_grace_period_seconds: of_pod,
            ..PodSpec::default()
        };

        let metadata = ObjectMeta {
            deletion_grace_period_seconds: deletion,
            ..ObjectMeta::default()
        };

        let pod = Pod {
            metadata,
            spec: Some(spec),
            ..Pod::default()
        };

        let probe = Probe {
            termination_grace_period_seconds: of_probe,
            ..Probe::default()
        };

        let container = Container {
            liveness_probe: Some(probe),
            ..Container::default()
        };

        assert_eq!(
            Grace::of(&pod, &container, Some(ProbeKind::Liveness)),
            Grace::seconds(seconds)
        );
    }

    #[test]
    fn deletion_takes_precedence_over_probes_and_those_over_the_pod() {
        check(Some(5), Some(30), Some(1), 5);
        check(None, Some(30), Some(1), 1);
        check(None, Some(30), None, 30);
        check(None, None, Some(1), 2);
    }

    #[tokio::test]
    async fn sidecars_stop_after_main_containers() {
        let sidecar = |name: &str| Container {
            name: name.into(),
            restart_policy: Some("Always".into()),
            ..Container::default()
        };

        let spec = PodSpec {
            init_containers: Some(vec![sidecar("first"), sidecar("second")]),
            containers: vec![Container {
                name: "main".into(),
                ..Container::default()
            }],
            ..PodSpec::default()
        };

        let pod = Pod {
            spec: Some(spec),
            ..Pod::default()
        };

        let order: Vec<usize> = ["main", "second", "first"]
            .iter()
            .map(|name| position_of(&pod, name))
            .collect();
        assert_eq!(order, [0, 1, 2]);

        let order = TerminationOrder::new(order.into_iter());
        order.wait(0, Duration::ZERO).await;
        assert!(
            timeout(
                Duration::from_millis(5),
                order.wait(1, Duration::from_secs(60))
            )
            .await
            .is_err()
        );

        order.finished(0);
        order.wait(1, Duration::from_secs(60)).await;

        // Waiting is bounded by the grace period.
        order.wait(2, Duration::from_millis(1)).await;
    }
}
