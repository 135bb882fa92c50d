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
use crate::records::{ContainerRecord, SandboxRecord, load, mend, names};
use crate::sandbox::Sandbox;
use crate::supervise::{Supervisor, keep_trying};

/// How long a restart waits for the supervisors of all pods. What is not known then is as it was
/// written down, until they answer.
const FIRST_ANSWERS: Duration = Duration::from_secs(2);

impl Node {
    /// Finds all pods and containers again. Their supervisors are asked all at once; who does not
    /// answer soon is waited for by those who need it, and by nobody else.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), Error> {
        let mut pods = JoinSet::new();
        for id in names(&self.config.sandbox_records()) {
            let folder = self.config.sandbox_root(&id);
            self.mend(&folder)?;
            let record: SandboxRecord = load(&folder).unwrap_or_default();

            let sandbox = Arc::new(Sandbox::new(id.clone(), record.clone()));
            if !record.complete {
                match self.is_observer {
                    // What is left of it is shown: it is not ready.
                    true => self.add_sandbox(sandbox),
                    false => drop(pods.spawn(Arc::clone(self).forget_unfinished_pod(sandbox))),
                }
                continue;
            }

            self.reserve(sandbox.name(), &id)?.keep();
            self.add_sandbox(sandbox);
        }

        let unfinished = self.recover_containers().await?;
        self.take_back().await;

        for sandbox in self.sandboxes() {
            let of_pod = |container: &&Arc<Container>| container.sandbox.id == sandbox.id;
            let unfinished = unfinished.iter().filter(of_pod).cloned().collect();
            pods.spawn(Arc::clone(self).recover_pod(sandbox, unfinished));
        }

        let all = async { while pods.join_next().await.is_some() {} };
        if tokio::time::timeout(FIRST_ANSWERS, all).await.is_err() {
            tracing::warn!(
                pods = pods.len(),
                "some supervisors have not responded yet; continuing start"
            );
            pods.detach_all();
        }

        Ok(())
    }

    /// Who only looks leaves a record to its writer.
    fn mend(&self, folder: &Path) -> Result<(), Error> {
        if self.is_observer {
            Ok(())
        } else {
            mend(folder)
        }
    }

    /// Reaches the supervisor of a pod, and takes away the containers that we died over.
    async fn recover_pod(self: Arc<Self>, sandbox: Arc<Sandbox>, unfinished: Vec<Arc<Container>>) {
        if !sandbox.record().stopped {
            match self.replace_supervisor(&sandbox).await {
                Ok(()) => {}
                Err(error) if sandbox.is_lost() => {
                    tracing::warn!(sandbox = sandbox.id, error = %error, "sandbox has no supervisor; its containers were killed");
                }
                Err(_) => {
                    tokio::spawn(keep_trying(Arc::downgrade(&self), Arc::downgrade(&sandbox)));
                }
            }

            if let Some(supervisor) = sandbox.supervisor()
                && let Err(error) = supervisor.met().await
            {
                tracing::warn!(sandbox = sandbox.id, error = %error, "supervisor does not respond; sandbox state unknown");
            }
        }

        for container in unfinished {
            // What cannot be taken away now is tried again when it is stopped, and at the next
            // start.
            if let Err(error) = self.clear_away(&container).await {
                tracing::warn!(container = container.id, error = %error, "cleanup of unfinished container incomplete; retrying at next start");
            }
        }
    }

    /// Takes away a pod that we died over; who asked for it does not know its id.
    async fn forget_unfinished_pod(self: Arc<Self>, sandbox: Arc<Sandbox>) {
        // Its supervisor may not have come as far as its cgroup, but its socket is there: it is
        // told to go.
        let (news, _) = mpsc::unbounded_channel();
        match Supervisor::reach(&self.config.sandbox_state(&sandbox.id), news).await {
            Ok((supervisor, _)) => sandbox.set_supervisor(Arc::new(supervisor)),
            Err(error) => {
                tracing::debug!(sandbox = sandbox.id, error = %error, "cannot connect to the supervisor of an unfinished sandbox");
            }
        }

        // What cannot be taken away now is tried again at the next start.
        if let Err(error) = self.take_down(&sandbox).await {
            tracing::warn!(sandbox = sandbox.id, error = %error, "cleanup of unfinished sandbox incomplete; retrying at next start");
        }
    }

    /// Reads all containers. Answers with those that we died over.
    async fn recover_containers(self: &Arc<Self>) -> Result<Vec<Arc<Container>>, Error> {
        let mut unfinished = Vec::new();
        for id in names(&self.config.container_records()) {
            let folder = self.config.container_root(&id);
            self.mend(&folder)?;
            let record: ContainerRecord = load(&folder).unwrap_or_default();
            if self.is_observer && (!record.complete || self.sandbox(&record.sandbox).is_err()) {
                continue;
            }

            let Ok(sandbox) = self.sandbox(&record.sandbox) else {
                let group = self.hierarchies.group(&record.cgroup);
                if !record.cgroup.is_empty() {
                    blocking(move || group.kill().and_then(|()| group.remove())).await?;
                }
                self.rootfs.remove(&id).await?;
                blocking(move || crate::sandbox::remove_folder(&folder)).await?;
                continue;
            };

            let exit = fs::read(folder.join("exit"))
                .ok()
                .and_then(|bytes| decode::<Exit>(&bytes).ok());

            let never_began = !record.start_error.is_empty();
            let state = match exit {
                // How the process ended that was to become its program is nobody's business.
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
                // Which of the two it is the supervisor knows.
                None if record.started_at != 0 => State::Running,
                None => State::Created,
            };

            let complete = record.complete;
            let container = Arc::new(Container::new(id.clone(), sandbox, record, state));
            if !complete {
                // It never ran. Nobody is to see it while it goes: who asked for it does not know
                // its id, and asks again.
                unfinished.push(container);
                continue;
            }

            self.reserve(container.name(), &id)?.keep();
            self.add_container(container);
        }

        Ok(unfinished)
    }

    /// Takes over what a supervisor knows of its containers. Answers with those that have not
    /// ended, and their pids.
    pub(crate) async fn learn(
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

    /// A pod without a supervisor: its containers are ended, and it is not ready any more.
    pub(crate) async fn abandon_all(&self, sandbox: &Sandbox) {
        drop(sandbox.lose_supervisor());
        if self.is_observer {
            return;
        }
        drop(sandbox.take_process());
        self.keeper.release(&sandbox.id);
        for container in self.containers_of(&sandbox.id) {
            self.abandon(&container).await;
        }
    }
}
