//! The keeper of a node: the parent of all supervisors, which holds the streams, terminals and
//! pidfds of containers, so that they survive when the runtime and a supervisor are killed
//! together.
//!
//! A pipe and its unread content are lost when the last process closes it, and only the parent of a
//! process gets its exit status. The runtime holds copies of its supervisors' descriptors, and this
//! process holds them too, for the whole node. Children of a killed supervisor are reparented to
//! the keeper. It exits when it holds nothing.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use coracle_supervisor::protocol::{Belongings, FromKeeper, ToKeeper, decode, encode};
use coracle_supervisor::socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{WaitOptions, set_child_subreaper, wait};

use crate::server::exit_code;
use crate::service::{detach, take_listener};
use crate::sys::{self, Cloned};

/// The argument that selects this mode.
pub(crate) const MODE: &str = "keep";

#[derive(Default)]
struct Keeper {
    /// By owner.
    held: BTreeMap<String, Held>,
    connections: Vec<OwnedFd>,
    /// The last owner was released.
    exiting: bool,
}

struct Held {
    belongings: Belongings,
    descriptors: Vec<OwnedFd>,
    /// The exit code of the owner's first process, if the keeper reaped it.
    ended: Option<i32>,
}

/// Serves the socket on standard input. The runtime is already connected.
pub(crate) fn run(cgroups: &[&str]) -> io::Result<()> {
    detach(c"coracle-keep", cgroups)?;
    set_child_subreaper(Some(rustix::process::getpid()))?;

    // All other signals are blocked: only SIGKILL ends this process.
    let signals = sys::take_signals()?;
    let (_, most) = sys::limit(libc::RLIMIT_NOFILE)?;
    sys::set_limit(libc::RLIMIT_NOFILE, most, most)?;
    let listener = take_listener()?;

    let mut keeper = Keeper::default();
    while !keeper.exiting {
        let all = [&listener, &signals].into_iter().chain(&keeper.connections);
        let mut events: Vec<PollFd<'_>> = all.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        match poll(&mut events, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };

        let ready: Vec<bool> = events
            .iter()
            .map(|event| !event.revents().is_empty())
            .collect();

        if ready[1] {
            while sys::next_signal(signals.as_fd()).is_some() {}
            keeper.reap();
        }

        keeper.handle_messages(&ready[2..]);

        if ready[0] {
            while let Ok(connection) = accept_with(&listener, SocketFlags::CLOEXEC) {
                keeper.connections.push(connection);
            }
        }

        keeper.exiting |= keeper.held.is_empty() && keeper.connections.is_empty();
    }

    Ok(())
}

impl Keeper {
    /// Reaps all exited processes, and records the exit codes of known owners.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            for held in self
                .held
                .values_mut()
                .filter(|held| held.belongings.pid == pid)
            {
                held.ended = Some(exit_code(status));
            }
        }
    }

    /// Handles one message of each ready connection, and drops closed ones.
    fn handle_messages(&mut self, ready: &[bool]) {
        let mut still_there = Vec::new();
        for (connection, ready) in std::mem::take(&mut self.connections).into_iter().zip(ready) {
            if !ready || self.answer(&connection).is_ok() {
                still_there.push(connection);
            }
        }
        self.connections = still_there;
    }

    /// Handles one message. An error closes the connection.
    fn answer(&mut self, connection: &OwnedFd) -> io::Result<()> {
        let (message, descriptors) =
            socket::receive(connection)?.ok_or(io::ErrorKind::ConnectionReset)?;
        let reply = |answer: &FromKeeper| socket::send(connection, &encode(answer), &[]);
        match decode(&message).map_err(io::Error::other)? {
            ToKeeper::Hold { belongings } => {
                self.hold(belongings, descriptors);
                Ok(())
            }
            ToKeeper::Release { owner } => {
                self.held.remove(&owner);
                self.exiting = self.held.is_empty();
                reply(&FromKeeper::Released {
                    left: u32::try_from(self.held.len()).unwrap_or(u32::MAX),
                })
            }
            ToKeeper::Return {} => self.return_all(connection),
            ToKeeper::Spawn { owner, words } => match spawn(&words, descriptors) {
                Ok((pid, pidfd)) => {
                    let answer = encode(&FromKeeper::Spawned { pid });
                    let sent = socket::send(connection, &answer, &[pidfd.as_fd()]);
                    self.hold(
                        Belongings {
                            owner,
                            pid,
                            terminal: false,
                        },
                        vec![pidfd],
                    );

                    sent
                }
                Err(errno) => reply(&FromKeeper::Failed {
                    errno: errno.raw_os_error(),
                }),
            },
            ToKeeper::How { owner } => {
                // It may have exited just now.
                self.reap();
                reply(&FromKeeper::Ended {
                    code: self.held.get(&owner).and_then(|held| held.ended),
                })
            }
        }
    }

    fn hold(&mut self, belongings: Belongings, descriptors: Vec<OwnedFd>) {
        let before = self
            .held
            .get(&belongings.owner)
            .filter(|held| held.belongings.pid == belongings.pid);

        let ended = before.and_then(|held| held.ended);
        self.held.insert(
            belongings.owner.clone(),
            Held {
                belongings,
                descriptors,
                ended,
            },
        );
    }

    fn return_all(&self, connection: &OwnedFd) -> io::Result<()> {
        for Held {
            belongings,
            descriptors,
            ..
        } in self.held.values()
        {
            let copies: Vec<_> = descriptors
                .iter()
                .map(|descriptor| descriptor.as_fd())
                .collect();
            let message = encode(&FromKeeper::Returned {
                belongings: belongings.clone(),
            });
            socket::send(connection, &message, &copies)?;
        }

        let pid = rustix::process::getpid().as_raw_nonzero().get();
        socket::send(connection, &encode(&FromKeeper::Done { pid }), &[])
    }
}

/// Starts a program in the keeper's cgroups.
fn spawn(words: &[String], descriptors: Vec<OwnedFd>) -> Result<(i32, OwnedFd), Errno> {
    let [program, stdin, stderr] =
        <[OwnedFd; 3]>::try_from(descriptors).map_err(|_| Errno::INVAL)?;
    let cloned =
        sys::clone3(0, None).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    match cloned {
        Cloned::Parent { pid, pidfd } => Ok((pid, pidfd)),
        Cloned::Child => {
            sys::reset_signals();
            let connected =
                rustix::stdio::dup2_stdin(stdin).and_then(|()| rustix::stdio::dup2_stderr(stderr));
            if connected.is_ok() {
                // Exec closes all other descriptors. If it fails, connections to the socket fail.
                sys::execve(
                    &format!("/proc/self/fd/{}", program.as_raw_fd()),
                    words,
                    &[],
                );
            }

            sys::exit_now(127)
        }
    }
}
