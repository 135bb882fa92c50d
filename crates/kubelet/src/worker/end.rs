//! Termination: stops containers, reports the last status, releases the pod's resources and deletes
//! its object.

use std::sync::Arc;

use coracle_files::remove_tree;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use tokio::time::Instant;

use super::kill::Grace;
use super::sync::{SyncError, chain};
use super::{Next, RESYNC, Stage, Worker};
use crate::actions::Verdicts;
use crate::cgroups::blocking;
use crate::logs;
use crate::mirrors::is_static;
use crate::observed::Observed;
use crate::pod::PodView;
use crate::status::is_terminal;

impl Worker {
    /// Stops everything within the grace period. If that is shortened meanwhile, it starts again
    /// with the shorter one.
    pub(super) async fn end(&mut self) -> Next {
        let pod = self.orders().pod;
        let grace = self.mailbox.ending.borrow().unwrap_or(1);
        let observed = match self.look(&pod).await {
            Ok(observed) => observed,
            Err(error) => return self.failed_to_end(&pod, &error.into()),
        };

        self.waiting.clear();
        let verdicts = self.verdicts(&pod, &observed);
        self.report_ending(&pod, &observed, &verdicts);
        self.shared.probes.end(pod.uid());

        self.shared
            .host
            .note(pod.uid(), "end", format!("within {grace} s"));
        let mut ending = self.mailbox.ending.subscribe();
        let killed = tokio::select! {
            killed = self.kill_pod(&pod, &observed, Some(Grace::seconds(grace))) => killed,
            _ = ending.wait_for(|now| now.is_some_and(|now| now < grace)) => return Next::Stage(Stage::Ending),
        };

        if let Err(error) = killed {
            return self.failed_to_end(&pod, &error);
        }

        self.shared.probes.forget(pod.uid());

        match self.look(&pod).await {
            Ok(stopped) if stopped.running().next().is_none() => {
                self.report(
                    &pod,
                    &keeping_addresses(stopped, &observed),
                    &Verdicts::default(),
                    true,
                );
                Next::Stage(Stage::Ended)
            }
            Ok(_) => Next::Wait(self.later()),
            Err(error) => self.failed_to_end(&pod, &error.into()),
        }
    }

    /// Reports the status while containers terminate.
    fn report_ending(&mut self, pod: &Arc<Pod>, observed: &Observed, verdicts: &Verdicts) {
        self.report(pod, observed, verdicts, false);
    }

    fn failed_to_end(&self, pod: &Pod, error: &SyncError) -> Next {
        let text = format!("error killing pod: {}", chain(error));
        self.shared
            .host
            .events
            .warning(&pod.reference(), "FailedKillPod", text);
        Next::Wait(self.later())
    }

    /// Nothing runs: removes volumes and cgroup, and reports the terminal status.
    pub(super) async fn give_back(&mut self) -> Next {
        let pod = self.orders().pod;
        if let Err(error) = self.shared.volumes.unmount(pod.uid()).await {
            tracing::warn!(pod = %pod.id(), %error, "cannot unmount volumes; retrying");
            return Next::Wait(self.later());
        }

        if let Err(error) = self.shared.groups.remove(pod.uid()).await {
            tracing::warn!(pod = %pod.id(), error = chain(&error), "cannot remove pod cgroup; retrying");
            return Next::Wait(self.later());
        }

        self.status = Arc::new(over(&pod, PodStatus::clone(&self.status)));
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
    pub(super) fn tell_once_more(&self) -> Next {
        self.publish(&self.orders().pod, false, true);
        Next::Wait(Instant::now() + RESYNC)
    }

    /// The object was deleted: removes everything else.
    pub(super) async fn leave_nothing(&mut self) {
        let pod = self.orders().pod;
        while let Err(error) = self.remove_all(&pod).await {
            tracing::warn!(pod = %pod.id(), error = chain(&error), "pod cleanup incomplete; retrying");
            tokio::time::sleep_until(self.later()).await;
        }
        let shared = &self.shared;
        shared.roster.forget(pod.uid());
        shared.publisher.forget(pod.uid());
        shared.puller.forget(pod.uid());
        shared.crashes.forget(&format!("{}/", pod.uid()));
    }

    async fn remove_all(&self, pod: &Pod) -> Result<(), SyncError> {
        let host = &self.shared.host;
        let observed = self.look(pod).await?;
        for sandbox in &observed.sandboxes {
            host.runtime.remove_pod_sandbox(&sandbox.id).await?;
        }

        let layout = host.layout.clone();
        let (id, logs, folder) = (pod.id(), layout.logs_of(&pod.id()), layout.pod(pod.uid()));

        Ok(blocking(move || {
            logs::remove_links(&layout, &id.name, &id.namespace, &logs)?;
            [logs, folder]
                .iter()
                .try_for_each(|folder| remove_tree(folder))
        })
        .await?)
    }
}

/// A stopped sandbox has no addresses; the pod's status keeps them.
fn keeping_addresses(mut stopped: Observed, before: &Observed) -> Observed {
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
fn over(pod: &Pod, mut status: PodStatus) -> PodStatus {
    let initialized = pod
        .pod_spec()
        .init_containers
        .iter()
        .flatten()
        .next()
        .is_none()
        || status.container_statuses.iter().flatten().any(has_begun);

    if initialized {
        status
            .container_statuses
            .iter_mut()
            .flatten()
            .for_each(end_somehow);
    }

    if let Some(all) = status.init_container_statuses.as_mut() {
        let last = all.iter().rposition(has_begun).unwrap_or(0);
        all.iter_mut().take(last + 1).for_each(end_somehow);
    }

    if !is_terminal(status.phase.as_deref()) && !is_static(pod) {
        status.phase = Some("Failed".to_owned());
    }

    status
}

fn has_begun(status: &ContainerStatus) -> bool {
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

fn end_somehow(status: &mut ContainerStatus) {
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
