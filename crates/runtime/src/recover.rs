//! After a restart: what is on the disk and what the supervisors hold is put together again, and what has ended
//! meanwhile is noticed. While we run: what the supervisors tell.

use std::fs;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use coracle_supervisor::protocol::{ContainerReport, Exit, Phase, decode};
use tokio::sync::mpsc;

use crate::clock;
use crate::container::{Container, NOT_STARTED, State, UNKNOWN_EXIT};
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::records::{ContainerRecord, SandboxRecord, load, names};
use crate::sandbox::Sandbox;
use crate::supervise::News;

impl Node {
    /// Finds all pods and containers again.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), Error> {
        for id in names(&self.config.sandbox_records()) {
            let folder = self.config.sandbox_root(&id);
            let record: SandboxRecord = load(&folder).unwrap_or_default();
            let sandbox = Arc::new(Sandbox::new(id.clone(), record.clone()));
            if !record.complete && self.is_observer {
                continue;
            }
            if !record.complete {
                // We died while we made it; who asked for it does not know its id.
                if let Err(error) = self.meet_supervisor(&sandbox).await {
                    tracing::debug!(sandbox = id, error = %error, "an unfinished pod has no supervisor");
                }
                // What cannot be taken away now is tried again at the next start.
                if let Err(error) = self.take_down(&sandbox).await {
                    tracing::warn!(sandbox = id, error = %error, "something is left of an unfinished pod");
                }
                continue;
            }
            self.reserve(sandbox.name(), &id)?.keep();
            self.add_sandbox(sandbox);
        }
        self.recover_containers().await?;
        for sandbox in self.sandboxes().into_iter().filter(|sandbox| !sandbox.record().stopped) {
            if let Err(error) = self.take_over(&sandbox).await {
                tracing::warn!(sandbox = sandbox.id, error = %error, "a pod has no supervisor any more");
                self.abandon_all(&sandbox).await;
            }
        }
        Ok(())
    }

    async fn recover_containers(self: &Arc<Self>) -> Result<(), Error> {
        for id in names(&self.config.container_records()) {
            let folder = self.config.container_root(&id);
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
            let exit = fs::read(folder.join("exit")).ok().and_then(|bytes| decode::<Exit>(&bytes).ok());
            let state = match exit {
                Some(exit) => State::Exited(exit),
                None if !record.start_error.is_empty() => {
                    State::Exited(Exit { code: NOT_STARTED, at: record.created_at, ..Exit::default() })
                }
                // Which of the two it is the supervisor knows.
                None if record.started_at != 0 => State::Running,
                None => State::Created,
            };
            let complete = record.complete;
            let container = Arc::new(Container::new(id.clone(), sandbox, record, state));
            self.reserve(container.name(), &id)?.keep();
            self.add_container(Arc::clone(&container));
            if !complete {
                self.forget_unfinished(&container).await?;
            }
        }
        Ok(())
    }

    /// Takes away a container that we died over; who asked for it does not know its id.
    async fn forget_unfinished(self: &Arc<Self>, container: &Arc<Container>) -> Result<(), Error> {
        if container.sandbox.supervisor().is_none()
            && let Err(error) = self.meet_supervisor(&container.sandbox).await
        {
            tracing::debug!(container = container.id, error = %error, "an unfinished container has no supervisor");
        }
        self.remove(container).await
    }

    /// Takes over what a supervisor knows of its containers. Answers with those that have not ended, and their pids.
    pub(crate) fn learn(&self, sandbox: &Sandbox, reports: &[ContainerReport]) -> Vec<(Arc<Container>, i32)> {
        let mut alive = Vec::new();
        for container in self.containers_of(&sandbox.id) {
            let report = reports.iter().find(|report| report.id == container.id);
            match report.map(|report| &report.phase) {
                Some(Phase::Exited { exit }) => self.container_ended(&container, exit.clone()),
                Some(Phase::Running {}) => drop(container.advance(State::Running)),
                Some(Phase::Created {}) => {}
                None => {
                    let exit =
                        Exit { code: UNKNOWN_EXIT, at: clock::now(), unknown: true, ..Exit::default() };
                    self.container_ended(&container, exit);
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
        sandbox.set_supervisor(None);
        if self.is_observer {
            return;
        }
        if let Some(mut child) = sandbox.take_child() {
            // It has ended, and only has to be collected.
            blocking(move || child.wait()).await.map(drop).unwrap_or_default();
        }
        for container in self.containers_of(&sandbox.id) {
            self.abandon(&container).await;
        }
    }
}

/// Listens to the news of a supervisor until it is gone, or nobody wants to know.
///
/// Boxed, because it ends in a meeting with the next supervisor, which begins with this.
pub(crate) fn follow(
    node: Weak<Node>,
    sandbox: Weak<Sandbox>,
    news: mpsc::UnboundedReceiver<News>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(listen(node, sandbox, news))
}

async fn listen(node: Weak<Node>, sandbox: Weak<Sandbox>, mut news: mpsc::UnboundedReceiver<News>) {
    while let Some(news) = news.recv().await {
        let (Some(node), Some(sandbox)) = (node.upgrade(), sandbox.upgrade()) else { return };
        match news {
            News::Exited { container, exit } => {
                let Ok(container) = node.container(&container) else { continue };
                // Nobody hears of the end before the start.
                drop(container.starting.lock().await);
                node.container_ended(&container, exit);
            }
            News::Gone => {
                // Who was told to go has been forgotten before.
                return node.replace_supervisor(&sandbox).await;
            }
        }
    }
}
