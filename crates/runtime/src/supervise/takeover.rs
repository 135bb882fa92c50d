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
use super::{Introduction, News, Program, Supervisor};
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::sandbox::Sandbox;

/// How often a supervisor is replaced for one request: one that is always killed is of no use.
const MOST_TRIES: usize = 10;

/// How long we wait before we try again to give a pod a supervisor: longer every time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Node {
    /// A pod's supervisor, as far as we know alive.
    pub(crate) async fn supervisor_of(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
    ) -> Result<Arc<Supervisor>, Error> {
        self.replace_supervisor(sandbox).await?;
        sandbox.supervisor().ok_or(Error::SupervisorGone)
    }

    /// Asks a pod's supervisor; when that is killed meanwhile, the one that takes over. For what
    /// may be done twice.
    pub(crate) async fn ask(
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

    /// Starts the program of a pod's supervisor. Blocks.
    pub(crate) fn start_supervisor(&self, sandbox: &Sandbox) -> Result<(), Error> {
        let state = self.config.sandbox_state(&sandbox.id);
        let (words, descriptors) = self.program.supervisor(&sandbox.id, &state)?;
        let spawned = self.keeper.spawn(&sandbox.id, words, descriptors);
        sandbox.set_process(spawned.map_err(Error::io("start the supervisor in", &state))?);
        Ok(())
    }

    /// Starts the program of the node's keeper, which is among the supervisors.
    pub(super) fn start_keeper(&self, folder: &Path) -> Result<(OwnedFd, Child), Error> {
        let cgroups = match self.supervisors().placement() {
            Placement::Tasks(files) => files,
            Placement::Folder(folder) => vec![folder.join("cgroup.procs")],
        };
        // One that an earlier runtime has started, and that does not answer.
        for process in self.supervisor_processes(KEEP) {
            if let Some(pid) = Pid::from_raw(process) {
                kill_process(pid, Signal::KILL).unwrap_or_default();
            }
        }
        self.program.start_keeper(folder, &cgroups)
    }

    /// Gives a pod another supervisor if its own is gone and nobody has dismissed it.
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
            false => self.reach_supervisor(sandbox).await.map(drop),
        };

        if reached.is_err()
            && (self.is_observer || !self.config.sandbox_state(&sandbox.id).exists())
        {
            // The host was started anew, and nothing of the pod is left; or it is not ours to do
            // anything.
            self.abandon_all(sandbox).await;
        }

        drop(turn);

        reached
    }

    /// Reaches the supervisor of a pod, which is a new one where there is none. It answers when it
    /// comes to it: until then its containers are left alone, since nothing says that they do not
    /// run.
    pub(crate) async fn reach_supervisor(
        self: &Arc<Self>,
        sandbox: &Arc<Sandbox>,
    ) -> Result<Arc<Supervisor>, Error> {
        let state = self.config.sandbox_state(&sandbox.id);
        for _ in 0..MOST_TRIES {
            let (sender, news) = mpsc::unbounded_channel();
            match Supervisor::reach(&state, sender).await {
                Ok((supervisor, introduction)) => {
                    let supervisor = Arc::new(supervisor);
                    sandbox.set_supervisor(Arc::clone(&supervisor));
                    tokio::spawn(follow(self, sandbox, &supervisor, introduction, news));
                    return Ok(supervisor);
                }
                // It was there, and is gone; or one of its children held its socket for a moment
                // longer.
                Err(Error::SupervisorGone) => continue,
                Err(Error::Io { ref source, .. })
                    if is_dead(source) && !self.is_observer && state.exists() => {}
                Err(error) => return Err(error),
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

    /// The processes that are supervisors of a pod, or the keeper, whoever started them.
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

/// Whether nobody listens at a socket: then the supervisor is dead, however long one that lives may
/// be silent.
fn is_dead(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::NotFound
    )
}

/// Tries again and again to give a pod a supervisor, until it has one or needs none.
pub(crate) async fn keep_trying(node: Weak<Node>, sandbox: Weak<Sandbox>) {
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

/// Gets to know a supervisor that was reached, and listens to its news until it is gone, or nobody
/// wants to know.
///
/// Boxed, because it ends in reaching the next supervisor, which begins with this. It does not keep
/// the node alive: that goes when its owner does.
fn follow(
    node: &Arc<Node>,
    sandbox: &Arc<Sandbox>,
    supervisor: &Arc<Supervisor>,
    introduction: Introduction,
    news: mpsc::UnboundedReceiver<News>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let (node, sandbox, supervisor) = (
        Arc::downgrade(node),
        Arc::downgrade(sandbox),
        Arc::downgrade(supervisor),
    );

    Box::pin(async move {
        let heard = introduction.heard().await;
        if let (Some(node), Some(sandbox), Some(supervisor), Ok(reports)) = (
            node.upgrade(),
            sandbox.upgrade(),
            supervisor.upgrade(),
            &heard,
        ) {
            for (container, pid) in node.learn(&sandbox, reports).await {
                node.keep(&container, &supervisor, pid).await;
            }
            supervisor.introduced();
        }

        listen(node, sandbox, news).await;
    })
}

async fn listen(node: Weak<Node>, sandbox: Weak<Sandbox>, mut news: mpsc::UnboundedReceiver<News>) {
    while let Some(news) = news.recv().await {
        let (Some(strong), Some(pod)) = (node.upgrade(), sandbox.upgrade()) else {
            return;
        };
        match news {
            News::Exited { container, exit } => {
                let Ok(container) = strong.container(&container) else {
                    continue;
                };
                // Nobody hears of the end before the start.
                drop(container.starting.lock().await);
                strong.container_ended(&container, exit).await;
            }
            // Who was told to go has been forgotten before.
            News::Gone if pod.is_lost() => return,
            News::Gone => {
                tracing::warn!(
                    sandbox = pod.id,
                    "supervisor connection closed; replacing the supervisor"
                );
                drop((strong, pod));
                return keep_trying(node, sandbox).await;
            }
        }
    }
}
