//! Syncs a pod: makes its actual state match its spec.

use std::sync::Arc;

use coracle_api::time::{Duration, Timestamp};
use coracle_base::error_chain;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use super::files::PodDirectories;
use super::{Next, PodWorker, RESYNC_INTERVAL, Stage, SyncedState};
use crate::actions::{Actions, pod_actions};
use crate::cgroups::blocking;
use crate::images;
use crate::observed::Observed;
use crate::pod::{Kind, PodView};
use crate::status::is_terminal;
use crate::volumes::VolumeError;

/// Why a sync failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyncError {
    #[error("container runtime request failed")]
    Runtime(#[from] coracle_cri::Error),
    #[error("network is not ready: {0}")]
    Network(String),
    #[error("cannot create the pod's cgroup")]
    Group(#[from] coracle_cgroup::Error),
    #[error("error making pod data directories")]
    PodDirectories(#[from] std::io::Error),
    #[error("cannot mount the pod's volumes")]
    Volumes(#[from] VolumeError),
    #[error(transparent)]
    Spec(#[from] crate::spec::SpecError),
    /// The pod must terminate.
    #[error("the pod is terminating")]
    Terminating,
}

/// Retry delay while the network is not ready.
const NETWORK_RETRY: std::time::Duration = std::time::Duration::from_secs(1);

impl PodWorker {
    /// One sync. Its effect is read from the runtime, not remembered.
    pub(super) async fn sync(&mut self) -> Next {
        if self.is_terminating() {
            return Next::Stage(Stage::Terminating);
        }

        let pod = self.request().pod;
        let observed = match self.observe(&pod).await {
            Ok(observed) => observed,
            Err(error) => {
                let text = format!("error determining status: {error}");
                self.shared
                    .host
                    .events
                    .warning(&pod.reference(), "FailedSync", text);
                return Next::Wait(self.retry_time());
            }
        };
        self.shared.probes.follow(&pod, &observed);

        let verdicts = self.verdicts(&pod, &observed);
        if let Some(synced) = self.synced.take()
            && synced.is_current(&pod, &observed, &verdicts)
        {
            if synced.pod.metadata.resource_version != pod.metadata.resource_version {
                // Conditions of others affect the Ready condition.
                self.report(&pod, &observed, &verdicts, false);
            }
            let wake = self.wake_at(&pod, synced.due);
            self.synced = Some(SyncedState { pod, ..synced });
            return Next::Wait(wake);
        }

        self.check_deadline(&pod);
        let actions = pod_actions(&pod, &observed, &verdicts);
        match actions.is_empty() {
            true => self.report(&pod, &observed, &verdicts, false),
            false => self.report_intermediate(&pod, &observed, &verdicts),
        }

        if is_terminal(self.status.phase.as_deref()) {
            self.mailbox.terminate_within(super::grace_period(&pod));
            return Next::Stage(Stage::Terminating);
        }

        let done = self.apply(&pod, &observed, &actions).await;
        self.finish_sync(&pod, &observed, done).await
    }

    /// Reads the new state, reports it, and returns when to sync again: at once if there is more to
    /// do.
    async fn finish_sync(
        &mut self,
        pod: &Arc<Pod>,
        before: &Observed,
        done: Result<Option<Timestamp>, SyncError>,
    ) -> Next {
        let observed = self.observe(pod).await;
        if let Ok(observed) = &observed {
            self.shared.probes.follow(pod, observed);
            let verdicts = self.verdicts(pod, observed);
            self.report(pod, observed, &verdicts, false);

            if let Ok(due) = done {
                let is_finished = is_terminal(self.status.phase.as_deref());
                if observed != before
                    && (is_finished || !pod_actions(pod, observed, &verdicts).is_empty())
                {
                    return Next::Wait(Instant::now());
                }

                let observed = observed.clone();
                self.synced = Some(SyncedState {
                    pod: pod.clone(),
                    observed,
                    verdicts,
                    due,
                });
            }
        }

        match done {
            Ok(wake) if observed.is_ok() => Next::Wait(self.wake_at(pod, wake)),
            Ok(_) => Next::Wait(self.retry_time()),
            Err(SyncError::Terminating) => Next::Stage(Stage::Terminating),
            Err(SyncError::Network(_)) => Next::Wait(Instant::now() + NETWORK_RETRY),
            Err(error) => {
                self.shared
                    .host
                    .note(pod.uid(), "sync", error_chain(&error));
                tracing::info!(pod = %pod.id(), error = error_chain(&error), "pod sync failed; retrying");
                Next::Wait(self.retry_time())
            }
        }
    }

    /// Executes the actions; returns when a retry is due.
    async fn apply(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        actions: &Actions,
    ) -> Result<Option<Timestamp>, SyncError> {
        self.check_network(pod)?;
        let shared = self.shared.clone();
        let about = pod.reference();
        self.create_cgroup_and_directories(pod).await?;
        let mounted = self.mount(pod).await?;
        let keyring = images::keyring(&shared.host, &shared.references, pod).await;

        if actions.create_sandbox && actions.sandbox.is_some() {
            let text = "Pod sandbox changed, it will be killed and re-created.";
            shared.host.events.normal(&about, "SandboxChanged", text);
        }

        if actions.kill_pod {
            self.kill_pod(pod, observed, None).await?;
            if !actions.create_sandbox {
                return Ok(None);
            }
            self.remove_init_containers(pod, observed).await?;
        }

        for kill in &actions.kill {
            self.kill_one(pod, observed, kill).await?;
        }

        let wake = self.start_all(pod, observed, actions, &keyring).await?;
        Ok([wake, mounted].into_iter().flatten().min())
    }

    /// Mounts the pod's volumes, unless the pod terminates meanwhile; returns when they must be
    /// mounted again.
    async fn mount(&self, pod: &Pod) -> Result<Option<Timestamp>, SyncError> {
        let mut termination = self.mailbox.termination.subscribe();
        let mounted = tokio::select! {
            mounted = self.shared.volumes.mount(pod) => mounted,
            _ = termination.wait_for(Option::is_some) => return Err(SyncError::Terminating),
        };

        match mounted {
            Ok(mounted) => Ok(mounted.renew_at),
            Err(error) => {
                for failure in &error.failures {
                    self.shared.host.events.warning(
                        &pod.reference(),
                        "FailedMount",
                        failure.as_str(),
                    );
                }
                Err(error.into())
            }
        }
    }

    /// Pods on the host network start without a pod network.
    fn check_network(&self, pod: &Pod) -> Result<(), SyncError> {
        let Some(why) = self
            .shared
            .network_problem()
            .filter(|_| !pod.is_host_network())
        else {
            return Ok(());
        };
        let text = format!("network is not ready: {why}");
        self.shared
            .host
            .events
            .warning(&pod.reference(), "NetworkNotReady", text);

        Err(SyncError::Network(why))
    }

    /// Creates the pod's cgroup and directories.
    async fn create_cgroup_and_directories(&self, pod: &Pod) -> Result<(), SyncError> {
        let ensure_group = self.shared.cgroups.ensure(pod);
        let directories = PodDirectories::of(&self.shared.host.layout, pod);
        let made = blocking(move || {
            ensure_group()?;
            Ok(directories.create()?)
        });

        let about = pod.reference();
        made.await.inspect_err(|error| match error {
            SyncError::Group(error) => {
                let text = format!(
                    "unable to ensure pod container exists: {}",
                    error_chain(error)
                );
                self.shared
                    .host
                    .events
                    .warning(&about, "FailedCreatePodContainer", text);
            }
            error => {
                let text = error_chain(error);
                self.shared.host.events.warning(&about, "Failed", text);
            }
        })
    }

    /// Fails a pod that exceeds its active deadline.
    fn check_deadline(&mut self, pod: &Pod) {
        if self.failed.is_none()
            && self
                .deadline(pod)
                .is_some_and(|due| self.shared.host.now() >= due)
        {
            let text = "Pod was active on the node longer than the specified deadline";
            self.shared
                .host
                .events
                .normal(&pod.reference(), "DeadlineExceeded", text);
            self.failed = Some(("DeadlineExceeded".to_owned(), text.to_owned()));
        }
    }

    fn deadline(&self, pod: &Pod) -> Option<Timestamp> {
        let seconds = pod.pod_spec().active_deadline_seconds?;
        let begun = self.status.start_time.as_ref()?.0.as_second();
        Some(Timestamp::from_unix(begun.saturating_add(seconds), 0))
    }

    /// The earliest of the next retry, the pod's deadline and the sync interval.
    fn wake_at(&self, pod: &Pod, due: Option<Timestamp>) -> Instant {
        let resync = RESYNC_INTERVAL.mul_f64(1.0 + 0.5 * self.shared.host.world.fraction());
        let now = self.shared.host.now();
        let until = |due: Timestamp| {
            due.since(now)
                .max(Duration::ZERO)
                .to_std()
                .unwrap_or(resync)
        };

        let first = [due, self.deadline(pod)]
            .into_iter()
            .flatten()
            .map(until)
            .min();

        Instant::now() + first.map_or(resync, |first| first.min(resync))
    }

    /// Init containers of an old sandbox would be taken for those of the new one.
    async fn remove_init_containers(
        &self,
        pod: &Pod,
        observed: &Observed,
    ) -> Result<(), SyncError> {
        let init: Vec<&str> = pod
            .lasting_containers()
            .filter(|(kind, _)| *kind != Kind::Main)
            .map(|(_, container)| container.name.as_str())
            .collect();

        for seen in observed
            .containers
            .iter()
            .filter(|seen| init.contains(&seen.name.as_str()))
        {
            self.shared.host.runtime.remove_container(&seen.id).await?;
        }

        Ok(())
    }
}
