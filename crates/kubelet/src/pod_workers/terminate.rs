//! Termination: stops containers, reports the last status, releases the pod's resources and deletes
//! its object.

use std::sync::Arc;

use coracle_base::error_chain;
use coracle_files::remove_tree;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use tokio::time::Instant;

use super::kill::Grace;
use super::sync::SyncError;
use super::{Next, PodWorker, RESYNC_INTERVAL, Stage};
use crate::actions::ProbeVerdicts;
use crate::cgroups::blocking;
use crate::logs;
use crate::mirror_pods::is_static;
use crate::observed::Observed;
use crate::pod::PodView;
use crate::status::is_terminal;

impl PodWorker {
    /// Stops everything within the grace period. If that is shortened meanwhile, it starts again
    /// with the shorter one.
    pub(super) async fn terminate(&mut self) -> Next {
        let pod = self.request().pod;
        let grace = self.mailbox.termination.borrow().unwrap_or(1);
        let observed = match self.observe(&pod).await {
            Ok(observed) => observed,
            Err(error) => return self.termination_failed(&pod, &error.into()),
        };

        self.waiting.clear();
        let verdicts = self.verdicts(&pod, &observed);
        self.report_terminating(&pod, &observed, &verdicts);
        self.shared.probes.end(pod.uid());

        self.shared
            .host
            .note(pod.uid(), "end", format!("within {grace} s"));
        let mut termination = self.mailbox.termination.subscribe();
        let killed = tokio::select! {
            killed = self.kill_pod(&pod, &observed, Some(Grace::seconds(grace))) => killed,
            _ = termination.wait_for(|now| now.is_some_and(|now| now < grace)) => return Next::Stage(Stage::Terminating),
        };

        if let Err(error) = killed {
            return self.termination_failed(&pod, &error);
        }

        self.shared.probes.forget(pod.uid());

        match self.observe(&pod).await {
            Ok(stopped) if stopped.running().next().is_none() => {
                self.report(
                    &pod,
                    &with_addresses(stopped, &observed),
                    &ProbeVerdicts::default(),
                    true,
                );
                Next::Stage(Stage::Terminated)
            }
            Ok(_) => Next::Wait(self.retry_time()),
            Err(error) => self.termination_failed(&pod, &error.into()),
        }
    }

    /// Reports the status while containers terminate.
    fn report_terminating(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        verdicts: &ProbeVerdicts,
    ) {
        self.report(pod, observed, verdicts, false);
    }

    fn termination_failed(&self, pod: &Pod, error: &SyncError) -> Next {
        let text = format!("error killing pod: {}", error_chain(error));
        self.shared
            .host
            .events
            .warning(&pod.reference(), "FailedKillPod", text);
        Next::Wait(self.retry_time())
    }

    /// Nothing runs: removes volumes and cgroup, and reports the terminal status.
    pub(super) async fn release_resources(&mut self) -> Next {
        let pod = self.request().pod;
        if let Err(error) = self.shared.volumes.unmount(pod.uid()).await {
            tracing::warn!(pod = %pod.id(), %error, "cannot unmount volumes; retrying");
            return Next::Wait(self.retry_time());
        }

        if let Err(error) = self.shared.cgroups.remove(pod.uid()).await {
            tracing::warn!(pod = %pod.id(), error = error_chain(&error), "cannot remove pod cgroup; retrying");
            return Next::Wait(self.retry_time());
        }

        self.status = Arc::new(final_status(&pod, PodStatus::clone(&self.status)));
        self.publish(&pod, false, true);
        self.shared.host.note(
            pod.uid(),
            "ended",
            self.status.phase.clone().unwrap_or_default(),
        );

        Next::Stage(Stage::Finished)
    }

    /// Publishes the final status again: the object may be marked for deletion only now, and must
    /// then be deleted. Repeated periodically; it costs nothing if the server has it.
    pub(super) fn republish(&self) -> Next {
        self.publish(&self.request().pod, false, true);
        Next::Wait(Instant::now() + RESYNC_INTERVAL)
    }

    /// The object was deleted: removes everything else.
    pub(super) async fn clean_up(&mut self) {
        let pod = self.request().pod;
        while let Err(error) = self.remove_all(&pod).await {
            tracing::warn!(pod = %pod.id(), error = error_chain(&error), "pod cleanup incomplete; retrying");
            tokio::time::sleep_until(self.retry_time()).await;
        }
        let shared = &self.shared;
        shared.pod_manager.forget(pod.uid());
        shared.status_manager.forget(pod.uid());
        shared.image_manager.forget(pod.uid());
        shared.crashes.forget(&format!("{}/", pod.uid()));
    }

    async fn remove_all(&self, pod: &Pod) -> Result<(), SyncError> {
        let host = &self.shared.host;
        let observed = self.observe(pod).await?;
        for sandbox in &observed.sandboxes {
            host.runtime.remove_pod_sandbox(&sandbox.id).await?;
        }

        let layout = host.layout.clone();
        let (id, logs, directory) = (pod.id(), layout.logs_of(&pod.id()), layout.pod(pod.uid()));

        Ok(blocking(move || {
            logs::remove_links(&layout, &id.name, &id.namespace, &logs)?;
            [logs, directory]
                .iter()
                .try_for_each(|directory| remove_tree(directory))
        })
        .await?)
    }
}

/// A stopped sandbox has no addresses; the pod's status keeps them.
fn with_addresses(mut stopped: Observed, before: &Observed) -> Observed {
    for sandbox in stopped
        .sandboxes
        .iter_mut()
        .filter(|sandbox| sandbox.addresses.is_empty())
    {
        if let Some(before) = before
            .sandboxes
            .iter()
            .find(|before| before.id == sandbox.id)
        {
            sandbox.addresses.clone_from(&before.addresses);
        }
    }

    stopped
}

/// The final status of a pod: containers that did not terminate are reported as lost, and the phase
/// is terminal.
fn final_status(pod: &Pod, mut status: PodStatus) -> PodStatus {
    let initialized = pod
        .pod_spec()
        .init_containers
        .iter()
        .flatten()
        .next()
        .is_none()
        || status.container_statuses.iter().flatten().any(has_started);

    if initialized {
        status
            .container_statuses
            .iter_mut()
            .flatten()
            .for_each(mark_lost);
    }

    if let Some(all) = status.init_container_statuses.as_mut() {
        let last = all.iter().rposition(has_started).unwrap_or(0);
        all.iter_mut().take(last + 1).for_each(mark_lost);
    }

    if !is_terminal(status.phase.as_deref()) && !is_static(pod) {
        status.phase = Some("Failed".to_owned());
    }

    status
}

fn has_started(status: &ContainerStatus) -> bool {
    let waits = status
        .state
        .as_ref()
        .is_some_and(|state| state.waiting.is_some());
    !waits
        || status
            .last_state
            .as_ref()
            .is_some_and(|state| state.terminated.is_some())
}

fn mark_lost(status: &mut ContainerStatus) {
    if status
        .state
        .as_ref()
        .is_none_or(|state| state.terminated.is_none())
    {
        let end =
            crate::status::lost("The container could not be located when the pod was terminated");
        status.state = Some(ContainerState {
            terminated: Some(end),
            ..ContainerState::default()
        });
        status.ready = false;
        status.started = Some(false);
    }
}
