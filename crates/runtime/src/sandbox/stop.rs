//! StopPodSandbox and RemovePodSandbox. Both are idempotent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coracle_cri::v1::{ContainerEventType, NamespaceMode};
use coracle_files::remove_tree;
use coracle_supervisor::protocol::Request;
use rustix::process::{Pid, Signal, kill_process};

use super::Sandbox;
use crate::error::Error;
use crate::namespaces::{Pins, detach};
use crate::node::{Node, blocking};
use crate::records::save;
use crate::spec::pod_namespaces;
use crate::sys;

/// How long a supervisor may take to exit.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);

impl Node {
    pub(crate) async fn stop_sandbox(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let Ok(sandbox) = self.sandbox(id) else {
            return Ok(());
        };
        if sandbox.is_unfinished() {
            // An unfinished sandbox is removed at once when it is stopped. A kubelet stops
            // sandboxes that are not ready before it retries, but removes them only with the pod,
            // and would accumulate one per attempt.
            return self.remove_unfinished(&sandbox).await;
        }

        let turn = sandbox.turn.lock().await;
        self.stop(&sandbox).await?;
        drop(turn);

        Ok(())
    }

    async fn stop(self: &Arc<Self>, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        if sandbox.record().stopped {
            return Ok(());
        }

        for container in self.containers_of(&sandbox.id) {
            self.kill(&container).await?;
            self.keeper.release_and_wait(&container.id).await;
        }

        self.release_resources(sandbox).await?;
        let record = sandbox.change(|record| record.stopped = true);

        let folder = self.config.sandbox_root(&sandbox.id);
        match blocking(move || save(&folder, record.as_ref())).await {
            // It is stopped all the same. The next start finds nothing running, and stops it again.
            Err(error) if error.is_read_only() => {
                tracing::warn!(sandbox = sandbox.id, %error, "cannot record sandbox as stopped");
            }
            saved => saved?,
        }

        self.send_event(
            &sandbox.id,
            &sandbox.id,
            ContainerEventType::ContainerStoppedEvent,
        );

        Ok(())
    }

    pub(crate) async fn remove_sandbox(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let Ok(sandbox) = self.sandbox(id) else {
            return Ok(());
        };
        if sandbox.is_unfinished() {
            return self.remove_unfinished(&sandbox).await;
        }

        let turn = sandbox.turn.lock().await;
        self.stop(&sandbox).await?;

        for container in self.containers_of(id) {
            self.remove(&container).await?;
        }

        self.delete_sandbox(&sandbox).await?;
        self.drop_sandbox(&sandbox);
        drop(turn);
        self.send_event(id, id, ContainerEventType::ContainerDeletedEvent);

        Ok(())
    }

    /// Releases the host resources of a pod: supervisor, network, namespaces.
    async fn release_resources(&self, sandbox: &Sandbox) -> Result<(), Error> {
        // First, so that a pod whose network teardown fails halfway is not ready any more.
        self.stop_supervisor(sandbox).await;
        let record = sandbox.record();
        if let Some(network) = &self.network
            && pod_namespaces(&record.config).network() != NamespaceMode::Node
        {
            // The network namespace is kept until then, so that plugins can be retried.
            network.detach(&self.pod(sandbox)).await?;
        }

        let state = self.config.sandbox_state(&sandbox.id);
        let group = self.group(&sandbox.cgroup_parent(), &sandbox.id);

        blocking(move || {
            Pins(&state).release()?;
            detach(&state.join("shm"))?;
            group.kill()?;
            Ok(group.remove()?)
        })
        .await
    }

    /// Stops the pod's supervisor: asks it to quit, and kills it if it does not respond. Its
    /// containers have exited.
    async fn stop_supervisor(&self, sandbox: &Sandbox) {
        let turn = sandbox.supervision.lock().await;
        let mut goes = false;
        if let Some(supervisor) = sandbox.take_supervisor() {
            let asked =
                tokio::time::timeout(QUIT_TIMEOUT, supervisor.call_at_once(Request::Quit {}, &[]))
                    .await;

            // One that exits before its reply is read has quit as well.
            goes = matches!(asked, Ok(Ok(_) | Err(Error::SupervisorGone)));

            if !goes {
                tracing::warn!(sandbox = sandbox.id, "supervisor did not quit; killing it");
            }
        }

        let process = sandbox.take_process();
        if !goes {
            let known = process.iter().map(|(pid, _)| *pid);
            for process in known.chain(self.supervisor_processes(&sandbox.id)) {
                if let Some(pid) = Pid::from_raw(process) {
                    // It may have exited already.
                    kill_process(pid, Signal::KILL).unwrap_or_default();
                }
            }
        }

        if let Some((_, pidfd)) = process {
            let ended = tokio::time::timeout(QUIT_TIMEOUT, sys::ended(pidfd)).await;
            if ended.is_err() {
                tracing::warn!(
                    sandbox = sandbox.id,
                    "supervisor process still running after kill"
                );
            }
        }

        self.keeper.release_and_wait(&sandbox.id).await;
        drop(turn);
    }

    /// Removes an unfinished pod. Until that succeeds it is listed as not ready, so that the
    /// kubelet stops it again. No event is sent, since none was sent for its creation.
    pub(crate) async fn remove_unfinished(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        let turn = sandbox.turn.lock().await;
        self.add_sandbox(Arc::clone(sandbox));
        self.delete_sandbox(sandbox).await?;
        self.drop_sandbox(sandbox);
        drop(turn);
        Ok(())
    }

    /// Removes everything of a pod.
    async fn delete_sandbox(&self, sandbox: &Sandbox) -> Result<(), Error> {
        if !sandbox.record().stopped {
            self.release_resources(sandbox).await?;
        }
        let (state, root) = (
            self.config.sandbox_state(&sandbox.id),
            self.config.sandbox_root(&sandbox.id),
        );
        blocking(move || remove_folder(&state).and_then(|()| remove_folder(&root))).await
    }
}

/// Removes a folder. Idempotent.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    remove_tree(folder).map_err(Error::io("remove", folder))
}
