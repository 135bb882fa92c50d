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

/// How long a supervisor may take to end.
const FAREWELL: Duration = Duration::from_secs(5);

impl Node {
    pub(crate) async fn stop_sandbox(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let Ok(sandbox) = self.sandbox(id) else {
            return Ok(());
        };
        if sandbox.is_unfinished() {
            // There is nothing to look at in one that has been stopped: it goes at once. A kubelet
            // stops what is not ready before it tries again, but removes it only with the pod, and
            // would gather one for every try.
            return self.take_down(&sandbox).await;
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
            self.keeper.released(&container.id).await;
        }

        self.let_go(sandbox).await?;
        let record = sandbox.change(|record| record.stopped = true);

        let folder = self.config.sandbox_root(&sandbox.id);
        match blocking(move || save(&folder, record.as_ref())).await {
            // It has ended all the same. Who starts next finds nothing of it that runs, and stops
            // it again.
            Err(error) if error.is_read_only() => {
                tracing::warn!(sandbox = sandbox.id, %error, "cannot record sandbox as stopped");
            }
            saved => saved?,
        }

        self.tell(
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
            return self.take_down(&sandbox).await;
        }

        let turn = sandbox.turn.lock().await;
        self.stop(&sandbox).await?;

        for container in self.containers_of(id) {
            self.remove(&container).await?;
        }

        self.erase(&sandbox).await?;
        self.drop_sandbox(&sandbox);
        drop(turn);
        self.tell(id, id, ContainerEventType::ContainerDeletedEvent);

        Ok(())
    }

    /// Gives back what the pod has of the host: supervisor, network, namespaces.
    async fn let_go(&self, sandbox: &Sandbox) -> Result<(), Error> {
        // First, so that a pod whose network is half taken away, and does not go on from there, is
        // not ready any more.
        self.dismiss(sandbox).await;
        let record = sandbox.record();
        if let Some(network) = &self.network
            && pod_namespaces(&record.config).network() != NamespaceMode::Node
        {
            // Its namespace stays until then: plugins are to find it as often as it takes.
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

    /// Ends the pod's supervisor: it is asked to, and killed if it does not answer. Its containers
    /// have ended.
    async fn dismiss(&self, sandbox: &Sandbox) {
        let turn = sandbox.supervision.lock().await;
        let mut goes = false;
        if let Some(supervisor) = sandbox.lose_supervisor() {
            let asked =
                tokio::time::timeout(FAREWELL, supervisor.call_at_once(Request::Quit {}, &[]))
                    .await;

            // One that goes before its answer is read has done what it was asked.
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
                    // It may have ended by itself.
                    kill_process(pid, Signal::KILL).unwrap_or_default();
                }
            }
        }

        if let Some((_, pidfd)) = process {
            let ended = tokio::time::timeout(FAREWELL, sys::ended(pidfd)).await;
            if ended.is_err() {
                tracing::warn!(
                    sandbox = sandbox.id,
                    "supervisor process still running after kill"
                );
            }
        }

        self.keeper.released(&sandbox.id).await;
        drop(turn);
    }

    /// Takes away what there is of an unfinished pod. As long as it does not go it is known, as one
    /// that is not ready: whoever asked for the pod finds it in the list, and stops it until it
    /// goes. Nobody was told that it came, so nobody is told that it goes.
    pub(crate) async fn take_down(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        let turn = sandbox.turn.lock().await;
        self.add_sandbox(Arc::clone(sandbox));
        self.erase(sandbox).await?;
        self.drop_sandbox(sandbox);
        drop(turn);
        Ok(())
    }

    /// Takes away all that there is of a pod.
    async fn erase(&self, sandbox: &Sandbox) -> Result<(), Error> {
        if !sandbox.record().stopped {
            self.let_go(sandbox).await?;
        }
        let (state, root) = (
            self.config.sandbox_state(&sandbox.id),
            self.config.sandbox_root(&sandbox.id),
        );
        blocking(move || remove_folder(&state).and_then(|()| remove_folder(&root))).await
    }
}

/// Removes a folder of ours. One that is gone is removed.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    remove_tree(folder).map_err(Error::io("remove", folder))
}
