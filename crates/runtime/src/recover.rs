//! Recovery after a restart: combines the records on disk with the state that the supervisors
//! report, and detects what has exited meanwhile.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coracle_supervisor::protocol::{ContainerReport, Exit, Phase, decode};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock;
use crate::container::{Container, NOT_STARTED, State, UNKNOWN_EXIT};
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::records::{ContainerRecord, SandboxRecord, load, names, repair};
use crate::sandbox::Sandbox;
use crate::supervise::{Supervisor, retry_supervisor};

/// How long a restart waits for the supervisors of all pods. Until a supervisor responds, its pod
/// has the recorded state.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(2);

impl Node {
    /// Recovers all pods and containers. Connects to all supervisors in parallel; only requests
    /// that need a slow one wait for it.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), Error> {
        let mut pods = JoinSet::new();
        for id in names(&self.config.sandbox_records()) {
            let folder = self.config.sandbox_root(&id);
            self.repair(&folder)?;
            let record: SandboxRecord = load(&folder).unwrap_or_default();

            let sandbox = Arc::new(Sandbox::new(id.clone(), record.clone()));
            if !record.complete {
                match self.is_observer {
                    // List the rest of it as not ready.
                    true => self.add_sandbox(sandbox),
                    false => drop(pods.spawn(Arc::clone(self).remove_unfinished_pod(sandbox))),
                }
                continue;
            }

            self.reserve(sandbox.name(), &id)?.keep();
            self.add_sandbox(sandbox);
        }

        let unfinished = self.recover_containers().await?;
        self.restore_held().await;

        for sandbox in self.sandboxes() {
            let of_pod = |container: &&Arc<Container>| container.sandbox.id == sandbox.id;
            let unfinished = unfinished.iter().filter(of_pod).cloned().collect();
            pods.spawn(Arc::clone(self).recover_pod(sandbox, unfinished));
        }

        let all = async { while pods.join_next().await.is_some() {} };
        if tokio::time::timeout(RECOVERY_TIMEOUT, all).await.is_err() {
            tracing::warn!(
                pods = pods.len(),
                "some supervisors have not responded yet; continuing start"
            );
            pods.detach_all();
        }

        Ok(())
    }

    /// Repairs a record. An observer leaves it to its writer.
    fn repair(&self, folder: &Path) -> Result<(), Error> {
        if self.is_observer {
            Ok(())
        } else {
            repair(folder)
        }
    }

    /// Connects to the supervisor of a pod, and removes containers whose creation was interrupted.
    async fn recover_pod(self: Arc<Self>, sandbox: Arc<Sandbox>, unfinished: Vec<Arc<Container>>) {
        if !sandbox.record().stopped {
            match self.replace_supervisor(&sandbox).await {
                Ok(()) => {}
                Err(error) if sandbox.is_lost() => {
                    tracing::warn!(sandbox = sandbox.id, error = %error, "sandbox has no supervisor; its containers were killed");
                }
                Err(_) => {
                    tokio::spawn(retry_supervisor(
                        Arc::downgrade(&self),
                        Arc::downgrade(&sandbox),
                    ));
                }
            }

            if let Some(supervisor) = sandbox.supervisor()
                && let Err(error) = supervisor.ready().await
            {
                tracing::warn!(sandbox = sandbox.id, error = %error, "supervisor does not respond; sandbox state unknown");
            }
        }

        for container in unfinished {
            // A failed cleanup is retried when the pod is stopped, and at the next start.
            if let Err(error) = self.clean_up_container(&container).await {
                tracing::warn!(container = container.id, error = %error, "cleanup of unfinished container incomplete; retrying at next start");
            }
        }
    }

    /// Removes a pod whose creation was interrupted; its ID was never returned.
    async fn remove_unfinished_pod(self: Arc<Self>, sandbox: Arc<Sandbox>) {
        // Its supervisor may not have joined its cgroup yet, but its socket exists: it is asked to
        // quit.
        let (events, _) = mpsc::unbounded_channel();
        match Supervisor::connect(&self.config.sandbox_state(&sandbox.id), events).await {
            Ok((supervisor, _)) => sandbox.set_supervisor(Arc::new(supervisor)),
            Err(error) => {
                tracing::debug!(sandbox = sandbox.id, error = %error, "cannot connect to the supervisor of an unfinished sandbox");
            }
        }

        // A failed cleanup is retried at the next start.
        if let Err(error) = self.remove_unfinished(&sandbox).await {
            tracing::warn!(sandbox = sandbox.id, error = %error, "cleanup of unfinished sandbox incomplete; retrying at next start");
        }
    }

    /// Reads all containers. Returns those whose creation was interrupted.
    async fn recover_containers(self: &Arc<Self>) -> Result<Vec<Arc<Container>>, Error> {
        let mut unfinished = Vec::new();
        for id in names(&self.config.container_records()) {
            let folder = self.config.container_root(&id);
            self.repair(&folder)?;
            let record: ContainerRecord = load(&folder).unwrap_or_default();
            if self.is_observer && (!record.complete || self.sandbox(&record.sandbox).is_err()) {
                continue;
            }

            let Ok(sandbox) = self.sandbox(&record.sandbox) else {
                let group = self.hierarchies.group(&record.cgroup);
                if !record.cgroup.is_empty() {
                    blocking(move || group.kill().and_then(|()| group.remove())).await?;
                }
                self.remove_rootfs(&id).await?;
                blocking(move || crate::sandbox::remove_folder(&folder)).await?;
                continue;
            };

            let exit = fs::read(folder.join("exit"))
                .ok()
                .and_then(|bytes| decode::<Exit>(&bytes).ok());

            let never_began = !record.start_error.is_empty();
            let state = match exit {
                // The exit code of the setup process is irrelevant.
                Some(exit) if never_began => State::Exited(Exit {
                    code: NOT_STARTED,
                    ..exit
                }),
                Some(exit) => State::Exited(exit),
                None if never_began => State::Exited(Exit {
                    code: NOT_STARTED,
                    at: record.created_at,
                    ..Exit::default()
                }),
                // The supervisor knows which of the two it is.
                None if record.started_at != 0 => State::Running,
                None => State::Created,
            };

            let complete = record.complete;
            let container = Arc::new(Container::new(id.clone(), sandbox, record, state));
            if !complete {
                // It never ran and is not listed while it is removed: its ID was never returned,
                // and the caller retries.
                unfinished.push(container);
                continue;
            }

            self.reserve(container.name(), &id)?.keep();
            self.add_container(container);
        }

        Ok(unfinished)
    }

    /// Applies a supervisor's reports of its containers. Returns those that have not exited, with
    /// their pids.
    pub(crate) async fn apply_reports(
        &self,
        sandbox: &Sandbox,
        reports: &[ContainerReport],
    ) -> Vec<(Arc<Container>, i32)> {
        let mut alive = Vec::new();
        for container in self.containers_of(&sandbox.id) {
            let report = reports.iter().find(|report| report.id == container.id);
            match report.map(|report| &report.phase) {
                Some(Phase::Exited { exit }) => {
                    self.container_ended(&container, exit.clone()).await
                }
                Some(Phase::Running {}) => drop(container.advance(State::Running)),
                Some(Phase::Created {}) => {}
                None => {
                    let exit = Exit {
                        code: UNKNOWN_EXIT,
                        at: clock::now(),
                        unknown: true,
                        ..Exit::default()
                    };
                    self.container_ended(&container, exit).await;
                }
            }

            if let (Some(report), State::Created | State::Running) = (report, container.state()) {
                let pid = report.pid;
                alive.push((container, pid));
            }
        }

        alive
    }

    /// Marks a pod as lost: its containers are killed, and it is not ready any more.
    pub(crate) async fn kill_unsupervised_pod(&self, sandbox: &Sandbox) {
        drop(sandbox.take_supervisor());
        if self.is_observer {
            return;
        }
        drop(sandbox.take_process());
        self.keeper.release(&sandbox.id);
        for container in self.containers_of(&sandbox.id) {
            self.kill_unsupervised(&container).await;
        }
    }
}
