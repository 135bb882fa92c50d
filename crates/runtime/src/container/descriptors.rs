//! Descriptors of a running container that the runtime holds, so that output, terminal and exit
//! status survive while its pod has no supervisor.
//!
//! A supervisor may be killed. Until another one has taken over, the output of a container is
//! buffered in pipes that the runtime keeps open, its input and terminal stay open, and its exit
//! status is read from its pidfd. The node's keeper ([`Keeper`](crate::supervise::Keeper)) holds
//! the same descriptors in case the runtime is killed too.

use std::fs;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use coracle_files::private;
use coracle_supervisor::process;
use coracle_supervisor::protocol::{Belongings, Exit, Reply, Request, encode, held};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Container, State};
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::supervise::{Holding, Supervisor};

#[derive(Default)]
pub(super) struct HeldDescriptors {
    process: Option<(i32, OwnedFd)>,
    /// Held open, so that unread output is not lost.
    outputs: Vec<OwnedFd>,
    stdin: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
}

impl Container {
    /// Drops our copy of the closed input.
    fn release_stdin(&self) {
        self.descriptors.lock().stdin = None;
    }

    /// Copies of all held descriptors; none if its process is unknown.
    fn holding(&self) -> Option<Holding> {
        let held = self.descriptors.lock();
        let (pid, pidfd) = held.process.as_ref()?;
        let belongings = Belongings {
            owner: self.id.clone(),
            pid: *pid,
            terminal: held.terminal.is_some(),
        };

        let all = [pidfd]
            .into_iter()
            .chain(&held.terminal)
            .chain(&held.stdin)
            .chain(&held.outputs);

        Some((
            belongings,
            all.map(OwnedFd::try_clone).collect::<Result<_, _>>().ok()?,
        ))
    }

    /// Takes the descriptors that the keeper held over a restart.
    fn restore_held(&self, belongings: &Belongings, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        *self.descriptors.lock() = HeldDescriptors {
            process: descriptors.next().map(|pidfd| (belongings.pid, pidfd)),
            terminal: if belongings.terminal {
                descriptors.next()
            } else {
                None
            },
            outputs: descriptors.collect(),
            stdin: None,
        };
    }

    /// Releases all descriptors.
    fn release(&self) -> HeldDescriptors {
        std::mem::take(&mut *self.descriptors.lock())
    }

    /// The exit code from the pidfd, if the kernel reports it.
    fn exit_code_by_pidfd(&self) -> Option<i32> {
        let held = self.descriptors.lock();
        let (pid, pidfd) = held.process.as_ref()?;
        process::exit_code(pidfd, *pid)
    }
}

impl Node {
    /// Sends all held descriptors of containers and supervisors to a new keeper.
    pub(crate) fn hold_all(&self) {
        self.containers()
            .iter()
            .for_each(|container| self.hold(container));
        self.sandboxes()
            .iter()
            .filter_map(|sandbox| sandbox.holding())
            .for_each(|one| self.keeper.hold(one));
    }

    fn hold(&self, container: &Container) {
        if let Some(holding) = container.holding() {
            self.keeper.hold(holding);
        }
    }

    /// Restores the descriptors that the keeper holds from before a restart.
    pub(crate) async fn restore_held(&self) {
        if self.is_observer {
            return;
        }

        for (belongings, descriptors) in self.keeper.take_all().await {
            let owner = belongings.owner.clone();
            match (self.container(&owner), self.sandbox(&owner)) {
                (Ok(container), _) if !matches!(container.state(), State::Exited(_)) => {
                    container.restore_held(&belongings, descriptors);
                }
                (_, Ok(sandbox)) if !sandbox.is_lost() => {
                    descriptors
                        .into_iter()
                        .for_each(|pidfd| sandbox.set_process((belongings.pid, pidfd)));
                }
                _ => self.keeper.release(&owner),
            }
        }
    }

    /// Releases the input of a container after it was closed.
    pub(super) fn close_input(&self, container: &Container) {
        container.release_stdin();
        self.hold(container);
    }

    /// Opens and holds a container's pidfd, streams and terminal. Failures are not errors: the
    /// container works without.
    pub(crate) async fn hold_descriptors(
        &self,
        container: &Container,
        supervisor: &Supervisor,
        pid: i32,
    ) {
        if self.is_observer {
            return;
        }

        let folder = self
            .config
            .sandbox_state(&container.sandbox.id)
            .join(held::CONTAINERS)
            .join(&container.id);

        let pidfd = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let end = |name: &str, flags: OFlags| open_pipe_end(&folder.join(name), flags);
        let mut held = HeldDescriptors {
            process: pidfd.map(|pidfd| (pid, pidfd)),
            outputs: [held::STDOUT, held::STDERR]
                .iter()
                .filter_map(|name| end(name, OFlags::RDONLY))
                .collect(),
            stdin: end(held::STDIN, OFlags::WRONLY),
            terminal: None,
        };

        if container.record().config.tty {
            // Attach returns the terminal.
            let request = Request::Attach {
                container: container.id.clone(),
                stdout: false,
                stderr: false,
            };

            if let Ok((Reply::Attached { terminal: true }, mut descriptors)) =
                supervisor.call_at_once(request, &[]).await
            {
                held.terminal = descriptors.pop();
            }
        }

        let before = std::mem::replace(&mut *container.descriptors.lock(), held);
        self.hold(container);

        // The new supervisor does not have the terminal: return it.
        if let Some(terminal) = before.terminal {
            let missing = container.descriptors.lock().terminal.is_none();
            if missing
                && let Err(error) = self.return_terminal(container, supervisor, terminal).await
            {
                tracing::warn!(container = container.id, error = %error, "cannot return terminal to supervisor; terminal lost");
            }
        }
    }

    async fn return_terminal(
        &self,
        container: &Container,
        supervisor: &Supervisor,
        terminal: OwnedFd,
    ) -> Result<(), Error> {
        let request = Request::ReturnTerminal {
            container: container.id.clone(),
        };
        supervisor
            .call_at_once(request, &[terminal.as_fd()])
            .await?;
        container.descriptors.lock().terminal = Some(terminal);
        self.hold(container);
        Ok(())
    }

    /// Completes an unknown exit code from the keeper or the pidfd, and releases all descriptors.
    pub(super) async fn resolve_exit(&self, container: &Container, mut exit: Exit) -> Exit {
        let seen = match exit.unknown {
            true => self
                .keeper
                .exit_code(&container.id)
                .await
                .or_else(|| container.exit_code_by_pidfd()),
            false => None,
        };

        if let Some(code) = seen {
            exit = Exit {
                code,
                unknown: false,
                ..exit
            };

            let path = self.config.container_root(&container.id).join("exit");
            let bytes = encode(&exit);

            // Supervisors use another name for their temporary file.
            let unfinished = path.with_extension("ours");
            let write = move || {
                private::create(&unfinished)?.write_all(&bytes)?;
                fs::rename(&unfinished, &path)
            };

            if let Err(error) = blocking(write).await {
                tracing::warn!(container = container.id, error = %error, "cannot write exit status");
            }
        }

        drop(container.release());
        self.keeper.release(&container.id);

        exit
    }
}

/// Opens one end of a named pipe; none if it does not exist, or has no other end.
fn open_pipe_end(path: &Path, flags: OFlags) -> Option<OwnedFd> {
    open(
        path,
        flags | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()
}
