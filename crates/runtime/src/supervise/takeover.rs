//! A supervisor that was killed: another one is started in its place and takes over what it held.

use std::io::ErrorKind;
use std::sync::Arc;

use coracle_cgroup::Placement;
use coracle_supervisor::protocol::Request;

use super::connection::Answer;
use super::{Program, Supervisor};
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::sandbox::Sandbox;

/// How often a supervisor is replaced for one request: one that is always killed is of no use.
const MOST_TRIES: usize = 10;

impl Node {
    /// A pod's supervisor, as far as we know alive.
    pub(crate) async fn supervisor_of(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
    ) -> Result<Arc<Supervisor>, Error> {
        self.replace_supervisor(sandbox).await;
        sandbox.supervisor().ok_or(Error::SupervisorGone)
    }

    /// Asks a pod's supervisor; when that is killed meanwhile, the one that takes over. For what may be done twice.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
        request: Request,
    ) -> Result<Answer, Error> {
        for _ in 0..MOST_TRIES {
            match self.supervisor_of(sandbox).await?.call(request.clone(), &[]).await {
                Err(Error::SupervisorGone) => {}
                answer => return answer,
            }
        }
        Err(Error::SupervisorGone)
    }

    /// Starts the program of a pod's supervisor.
    pub(crate) fn start_supervisor(&self, sandbox: &Sandbox) -> Result<(), Error> {
        let cgroups = match self.supervisors().placement() {
            Placement::Tasks(files) => files,
            Placement::Folder(folder) => vec![folder.join("cgroup.procs")],
        };
        let state = self.config.sandbox_state(&sandbox.id);
        sandbox.set_child(self.program.start(&sandbox.id, &state, &cgroups)?);
        Ok(())
    }

    /// Gives a pod another supervisor if its own is gone and nobody has dismissed it.
    pub(crate) async fn replace_supervisor(self: &Arc<Self>, sandbox: &Arc<Sandbox>) {
        let is_gone = || sandbox.supervisor().is_some_and(|supervisor| supervisor.is_gone());
        if !is_gone() {
            return;
        }
        let turn = sandbox.supervision.lock().await;
        if is_gone() {
            tracing::warn!(sandbox = sandbox.id, "the supervisor of a pod is gone");
            if let Err(error) = self.take_over(sandbox).await {
                tracing::warn!(sandbox = sandbox.id, error = %error, "no other supervisor takes over");
                self.abandon_all(sandbox).await;
            }
        }
        drop(turn);
    }

    /// Meets the supervisor of a pod, which is a new one where there is none.
    pub(crate) async fn take_over(self: &Arc<Self>, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        for _ in 0..MOST_TRIES {
            match self.meet_supervisor(sandbox).await {
                // It was there, and is gone; or one of its children held its socket for a moment longer.
                Err(Error::SupervisorGone) => continue,
                Err(Error::Io { ref source, .. })
                    if source.kind() == ErrorKind::ConnectionRefused && !self.is_observer => {}
                met => return met,
            }
            if let Some(mut child) = sandbox.take_child() {
                // It has ended, and only has to be collected.
                blocking(move || child.wait()).await.map(drop).unwrap_or_default();
            }
            let (node, pod) = (Arc::clone(self), Arc::clone(sandbox));
            blocking(move || {
                Program::clear_way(&node.config.sandbox_state(&pod.id))?;
                node.start_supervisor(&pod)
            })
            .await?;
        }
        Err(Error::SupervisorGone)
    }
}
