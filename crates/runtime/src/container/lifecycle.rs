//! StartContainer, StopContainer, RemoveContainer.

use std::sync::Arc;
use std::time::Duration;

use coracle_cri::v1::ContainerEventType;
use coracle_files::private;
use coracle_supervisor::protocol::{Exit, Failure, Request, encode};

use super::{Container, State};
use crate::clock;
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::records::save;

/// How long a killed container may take to exit: a process blocked on a disk may take longer.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);

/// The exit code of a container whose program could not be started.
pub(crate) const NOT_STARTED: i32 = 128;

impl Node {
    pub(crate) async fn start_container(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let container = self.container(id)?;
        let starting = container.starting.lock().await;

        if container.state() != State::Created {
            return Err(Error::WrongState(format!(
                "container {id:?} is not in the state created"
            )));
        }

        let supervisor = self.supervisor_of(&container.sandbox).await?;

        // Taken before: a short container may exit before the reply arrives.
        let started_at = clock::now();
        let mut started = supervisor
            .call(
                Request::Start {
                    container: id.to_owned(),
                },
                &[],
            )
            .await
            .map(drop);

        if matches!(started, Err(Error::SupervisorGone)) {
            // Only the new supervisor knows whether the container was started.
            self.supervisor_of(&container.sandbox)
                .await?
                .ready()
                .await?;
            if container.state() == State::Running {
                started = Ok(());
            }
        }

        match started {
            Ok(()) => {
                container.advance(State::Running);
                self.update_record(&container, |record| record.started_at = started_at)
                    .await?;
                self.send_event(
                    id,
                    &container.sandbox.id,
                    ContainerEventType::ContainerStartedEvent,
                );
            }
            // It may still start: the supervisor reports it later.
            Err(Error::SupervisorTimeout) => return Err(Error::SupervisorTimeout),
            Err(error) => {
                let text = error.to_string();
                let exit = Exit {
                    code: NOT_STARTED,
                    at: clock::now(),
                    ..Exit::default()
                };
                self.container_ended(&container, exit).await;

                self.update_record(&container, |record| record.start_error = text)
                    .await?;
                return Err(error);
            }
        }

        drop(starting);

        Ok(())
    }

    async fn update_record(
        &self,
        container: &Container,
        change: impl FnOnce(&mut crate::records::ContainerRecord),
    ) -> Result<(), Error> {
        let (record, folder) = (
            container.change(change),
            self.config.container_root(&container.id),
        );
        blocking(move || save(&folder, record.as_ref())).await
    }

    pub(crate) async fn stop_container(
        self: &Arc<Self>,
        id: &str,
        grace: Duration,
    ) -> Result<(), Error> {
        let Ok(container) = self.container(id) else {
            return Ok(());
        };
        if container.state() != State::Running {
            return Ok(());
        }

        if !grace.is_zero() {
            self.signal(&container, container.record().stop_signal)
                .await?;
            if tokio::time::timeout(grace, container.ended()).await.is_ok() {
                return Ok(());
            }
        }

        self.kill(&container).await
    }

    /// Kills a running container with all its processes.
    pub(crate) async fn kill(self: &Arc<Self>, container: &Arc<Container>) -> Result<(), Error> {
        if container.state() != State::Running {
            return Ok(());
        }

        match self.signal(container, libc::SIGKILL).await {
            // Kill it through its cgroup instead.
            Err(Error::SupervisorTimeout) => return self.kill_cgroup(container).await,
            sent => sent?,
        }

        if tokio::time::timeout(KILL_TIMEOUT, container.ended())
            .await
            .is_err()
        {
            return Err(Error::TimedOut(format!(
                "container {:?} did not exit after SIGKILL",
                container.id
            )));
        }

        Ok(())
    }

    /// Kills a container whose supervisor does not respond.
    async fn kill_cgroup(&self, container: &Container) -> Result<(), Error> {
        let group = self.hierarchies.group(&container.record().cgroup);
        blocking(move || group.kill()).await?;
        let exit = Exit {
            code: 128 + libc::SIGKILL,
            at: clock::now(),
            ..Exit::default()
        };
        self.container_ended(container, exit).await;
        Ok(())
    }

    /// Sends a signal; one that has exited meanwhile is no error.
    async fn signal(self: &Arc<Self>, container: &Container, signal: i32) -> Result<(), Error> {
        let request = Request::Signal {
            container: container.id.clone(),
            signal,
        };

        match self.call_supervisor(&container.sandbox, request).await {
            Ok(_)
            | Err(Error::Refused(
                Failure::WrongPhase { .. }
                | Failure::Step {
                    errno: libc::ESRCH, ..
                },
            )) => Ok(()),
            // The pod is lost: its containers were killed.
            Err(Error::SupervisorGone) if container.sandbox.is_lost() => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn remove_container(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let Ok(container) = self.container(id) else {
            return Ok(());
        };
        self.remove(&container).await
    }

    pub(crate) async fn remove(self: &Arc<Self>, container: &Arc<Container>) -> Result<(), Error> {
        // Wait for a start in progress. The exit is reported without the lock.
        drop(container.starting.lock().await);
        self.kill(container).await?;
        self.clean_up_container(container).await?;
        self.drop_container(container);
        self.send_event(
            &container.id,
            &container.sandbox.id,
            ContainerEventType::ContainerDeletedEvent,
        );

        Ok(())
    }

    /// Records the exit of a container and sends the event.
    pub(crate) async fn container_ended(&self, container: &Container, exit: Exit) {
        let exit = self.resolve_exit(container, exit).await;
        if container.advance(State::Exited(exit)) {
            self.send_event(
                &container.id,
                &container.sandbox.id,
                ContainerEventType::ContainerStoppedEvent,
            );
        }
    }

    /// Kills a container whose supervisor is gone and cannot be replaced: its output would not be
    /// read.
    pub(crate) async fn kill_unsupervised(&self, container: &Container) {
        if matches!(container.state(), State::Exited(_)) {
            return;
        }

        let group = self.hierarchies.group(&container.record().cgroup);

        let (exit_file, exit) = (
            self.config.container_root(&container.id).join("exit"),
            Exit {
                code: UNKNOWN_EXIT,
                at: clock::now(),
                unknown: true,
                ..Exit::default()
            },
        );

        let written = exit.clone();
        let ended = blocking(move || {
            group.kill()?;
            // The supervisor may have written it before it was killed.
            if !exit_file.exists() {
                private::write(&exit_file, &encode(&written))
                    .map_err(Error::io("write", &exit_file))?;
            }
            Ok::<(), Error>(())
        })
        .await;

        if let Err(error) = ended {
            tracing::warn!(container = container.id, error = %error, "cannot kill container without supervisor");
        }

        self.container_ended(container, exit).await;
    }
}

/// The exit code of a container whose exit status is unknown.
pub(crate) const UNKNOWN_EXIT: i32 = 255;
