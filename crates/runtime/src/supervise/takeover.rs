//! Connects to the supervisor of a pod, and replaces it when it was killed; the new one takes over
//! its containers.
//!
//! Only a dead supervisor is replaced, one whose socket refuses connections. One that does not
//! respond still has its running containers; the runtime waits for it.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::process::Child;
use std::sync::{Arc, Weak};
use std::time::Duration;

use coracle_cgroup::Placement;
use coracle_supervisor::protocol::Request;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;

use super::connection::Answer;
use super::program::KEEP;
use super::{Handshake, Program, Supervisor, SupervisorEvent};
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::sandbox::Sandbox;

/// How often a supervisor is replaced for one request.
const MOST_TRIES: usize = 10;

/// Backoff between attempts to replace a supervisor.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Node {
    /// A pod's supervisor, replaced if it is gone.
    pub(crate) async fn supervisor_of(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
    ) -> Result<Arc<Supervisor>, Error> {
        self.replace_supervisor(sandbox).await?;
        sandbox.supervisor().ok_or(Error::SupervisorGone)
    }

    /// Calls a pod's supervisor; if it is killed meanwhile, calls its replacement. For idempotent
    /// requests.
    pub(crate) async fn call_supervisor(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
        request: Request,
    ) -> Result<Answer, Error> {
        for _ in 0..MOST_TRIES {
            match self
                .supervisor_of(sandbox)
                .await?
                .call(request.clone(), &[])
                .await
            {
                Err(Error::SupervisorGone) => {}
                answer => return answer,
            }
        }

        Err(Error::SupervisorGone)
    }

    /// Starts a pod's supervisor. Blocks.
    pub(crate) fn start_supervisor(&self, sandbox: &Sandbox) -> Result<(), Error> {
        let state = self.config.sandbox_state(&sandbox.id);
        let (words, descriptors) = self.program.supervisor(&sandbox.id, &state)?;
        let spawned = self.keeper.spawn(&sandbox.id, words, descriptors);
        sandbox.set_process(spawned.map_err(Error::io("start the supervisor in", &state))?);
        Ok(())
    }

    /// Starts the node's keeper, in the cgroup of the supervisors.
    pub(super) fn start_keeper(&self, folder: &Path) -> Result<(OwnedFd, Child), Error> {
        let cgroups = match self.supervisors().placement() {
            Placement::Tasks(files) => files,
            Placement::Folder(folder) => vec![folder.join("cgroup.procs")],
        };
        // Kill one of an earlier runtime that does not respond.
        for process in self.supervisor_processes(KEEP) {
            if let Some(pid) = Pid::from_raw(process) {
                kill_process(pid, Signal::KILL).unwrap_or_default();
            }
        }
        self.program.start_keeper(folder, &cgroups)
    }

    /// Replaces a pod's supervisor if it is gone and was not stopped.
    pub(crate) async fn replace_supervisor(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
    ) -> Result<(), Error> {
        let is_there = || {
            sandbox
                .supervisor()
                .is_some_and(|supervisor| !supervisor.is_gone())
        };

        if is_there() {
            return Ok(());
        }

        let turn = sandbox.supervision.lock().await;
        let reached = match is_there() {
            true => Ok(()),
            false if sandbox.is_lost() => Err(Error::SupervisorGone),
            false => self.dial_supervisor(sandbox).await.map(drop),
        };

        if reached.is_err()
            && (self.is_observer || !self.config.sandbox_state(&sandbox.id).exists())
        {
            // After a reboot nothing of the pod is left; an observer cannot replace a supervisor.
            self.kill_unsupervised_pod(sandbox).await;
        }

        drop(turn);

        reached
    }

    /// Connects to the supervisor of a pod, starting a new one if it is dead. Does not wait for the
    /// handshake: until then its containers keep their state.
    pub(crate) async fn dial_supervisor(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
    ) -> Result<Arc<Supervisor>, Error> {
        let state = self.config.sandbox_state(&sandbox.id);
        for _ in 0..MOST_TRIES {
            let (sender, events) = mpsc::unbounded_channel();
            match Supervisor::connect(&state, sender).await {
                Ok((supervisor, handshake)) => {
                    let supervisor = Arc::new(supervisor);
                    sandbox.set_supervisor(Arc::clone(&supervisor));
                    tokio::spawn(follow(self, sandbox, &supervisor, handshake, events));
                    return Ok(supervisor);
                }
                // It exited just now; or one of its children still held its socket.
                Err(Error::SupervisorGone) => continue,
                Err(Error::Io { ref source, .. })
                    if is_dead(source) && !self.is_observer && state.exists() => {}
                Err(error) => return Err(error),
            }

            let (node, pod) = (Arc::clone(self), Arc::clone(sandbox));
            blocking(move || {
                Program::remove_socket(&node.config.sandbox_state(&pod.id))?;
                node.start_supervisor(&pod)
            })
            .await?;
        }

        Err(Error::SupervisorGone)
    }

    /// The supervisor processes of a pod, or the keepers, including those of earlier runtimes.
    pub(crate) fn supervisor_processes(&self, sandbox: &str) -> Vec<i32> {
        let is_of = |process: &i32| {
            let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).nth(1) == Some(sandbox.as_bytes())
        };
        self.supervisors()
            .processes()
            .into_iter()
            .filter(is_of)
            .collect()
    }
}

/// Whether a connect error means that the supervisor is dead: its socket does not exist or refuses
/// connections.
fn is_dead(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::NotFound
    )
}

/// Retries to replace a pod's supervisor, until it has one or needs none.
pub(crate) async fn retry_supervisor(node: Weak<Node>, sandbox: Weak<Sandbox>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let (Some(node), Some(sandbox)) = (node.upgrade(), sandbox.upgrade()) else {
            return;
        };
        match node.replace_supervisor(&sandbox).await {
            Ok(()) => return,
            Err(_) if sandbox.is_lost() => return,
            Err(error) => {
                tracing::warn!(sandbox = sandbox.id, error = %error, "cannot start supervisor; retrying");
            }
        }

        drop((node, sandbox));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Completes the handshake with a supervisor, and handles its events until the connection closes or
/// the node is dropped.
///
/// Boxed, because it ends in connecting to the next supervisor, which recurses. It does not keep
/// the node alive.
fn follow(
    node: &Arc<Node>,
    sandbox: &Arc<Sandbox>,
    supervisor: &Arc<Supervisor>,
    handshake: Handshake,
    events: mpsc::UnboundedReceiver<SupervisorEvent>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let (node, sandbox, supervisor) = (
        Arc::downgrade(node),
        Arc::downgrade(sandbox),
        Arc::downgrade(supervisor),
    );

    Box::pin(async move {
        let reports = handshake.complete().await;
        if let (Some(node), Some(sandbox), Some(supervisor), Ok(reports)) = (
            node.upgrade(),
            sandbox.upgrade(),
            supervisor.upgrade(),
            &reports,
        ) {
            for (container, pid) in node.apply_reports(&sandbox, reports).await {
                node.hold_descriptors(&container, &supervisor, pid).await;
            }
            supervisor.set_ready();
        }

        listen(node, sandbox, events).await;
    })
}

async fn listen(
    node: Weak<Node>,
    sandbox: Weak<Sandbox>,
    mut events: mpsc::UnboundedReceiver<SupervisorEvent>,
) {
    while let Some(event) = events.recv().await {
        let (Some(strong), Some(pod)) = (node.upgrade(), sandbox.upgrade()) else {
            return;
        };
        match event {
            SupervisorEvent::Exited { container, exit } => {
                let Ok(container) = strong.container(&container) else {
                    continue;
                };
                // The exit event must not precede the start event.
                drop(container.starting.lock().await);
                strong.container_ended(&container, exit).await;
            }
            // It was stopped on purpose.
            SupervisorEvent::Gone if pod.is_lost() => return,
            SupervisorEvent::Gone => {
                tracing::warn!(
                    sandbox = pod.id,
                    "supervisor connection closed; replacing the supervisor"
                );
                drop((strong, pod));
                return retry_supervisor(node, sandbox).await;
            }
        }
    }
}
