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
use crate::node::{Node, blocking, lock};
use crate::supervise::{Holding, Supervisor};

#[derive(Default)]
pub(super) struct Kept {
    process: Option<(i32, OwnedFd)>,
    /// Held open, so that what waits in there is not lost.
    outputs: Vec<OwnedFd>,
    stdin: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
}

impl Container {
    /// The input is closed for good.
    fn release_stdin(&self) {
        lock(&self.kept).stdin = None;
    }

    /// Copies of all that we hold; none where its process is not known.
    fn holding(&self) -> Option<Holding> {
        let kept = lock(&self.kept);
        let (pid, pidfd) = kept.process.as_ref()?;
        let belongings = Belongings {
            owner: self.id.clone(),
            pid: *pid,
            terminal: kept.terminal.is_some(),
        };

        let all = [pidfd]
            .into_iter()
            .chain(&kept.terminal)
            .chain(&kept.stdin)
            .chain(&kept.outputs);

        Some((
            belongings,
            all.map(OwnedFd::try_clone).collect::<Result<_, _>>().ok()?,
        ))
    }

    /// Holds what was held before this process began.
    fn take_back(&self, belongings: &Belongings, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        *lock(&self.kept) = Kept {
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

    /// Lets go of what is no longer needed.
    fn release(&self) -> Kept {
        std::mem::take(&mut *lock(&self.kept))
    }

    /// How it ended, if nobody else saw it and the kernel tells us.
    fn seen_by_us(&self) -> Option<i32> {
        let kept = lock(&self.kept);
        let (pid, pidfd) = kept.process.as_ref()?;
        process::exit_code(pidfd, *pid)
    }
}

impl Node {
    /// Has the keeper hold what we hold of every container and supervisor, of which it knows
    /// nothing.
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

    /// Takes back what the keeper holds since before this process began.
    pub(crate) async fn take_back(&self) {
        if self.is_observer {
            return;
        }

        for (belongings, descriptors) in self.keeper.returned().await {
            let owner = belongings.owner.clone();
            match (self.container(&owner), self.sandbox(&owner)) {
                (Ok(container), _) if !matches!(container.state(), State::Exited(_)) => {
                    container.take_back(&belongings, descriptors);
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

    /// A container's input is closed for good.
    pub(super) fn close_input(&self, container: &Container) {
        container.release_stdin();
        self.hold(container);
    }

    /// Holds on to a container's first process and its streams. What cannot be held is not worth an
    /// error.
    pub(crate) async fn keep(&self, container: &Container, supervisor: &Supervisor, pid: i32) {
        if self.is_observer {
            return;
        }

        let folder = self
            .config
            .sandbox_state(&container.sandbox.id)
            .join(held::CONTAINERS)
            .join(&container.id);

        let pidfd = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let end = |name: &str, flags: OFlags| end_of(&folder.join(name), flags);
        let mut kept = Kept {
            process: pidfd.map(|pidfd| (pid, pidfd)),
            outputs: [held::STDOUT, held::STDERR]
                .iter()
                .filter_map(|name| end(name, OFlags::RDONLY))
                .collect(),
            stdin: end(held::STDIN, OFlags::WRONLY),
            terminal: None,
        };

        if container.record().config.tty {
            // Who attaches is given the terminal.
            let request = Request::Attach {
                container: container.id.clone(),
                stdout: false,
                stderr: false,
            };

            if let Ok((Reply::Attached { terminal: true }, mut descriptors)) =
                supervisor.call_at_once(request, &[]).await
            {
                kept.terminal = descriptors.pop();
            }
        }

        let before = std::mem::replace(&mut *lock(&container.kept), kept);
        self.hold(container);

        // Nobody else has it: the supervisor that took over is to have it back.
        if let Some(terminal) = before.terminal {
            let missing = lock(&container.kept).terminal.is_none();
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
        lock(&container.kept).terminal = Some(terminal);
        self.hold(container);
        Ok(())
    }

    /// How a container ended, as far as we know better; nothing of it is held any more.
    pub(super) async fn settle(&self, container: &Container, mut exit: Exit) -> Exit {
        let seen = match exit.unknown {
            true => self
                .keeper
                .how_ended(&container.id)
                .await
                .or_else(|| container.seen_by_us()),
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

            // A supervisor has another name for one that is not finished.
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

/// One end of a named pipe; none where there is none, or nobody has the other end.
fn end_of(path: &Path, flags: OFlags) -> Option<OwnedFd> {
    open(
        path,
        flags | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()
}
