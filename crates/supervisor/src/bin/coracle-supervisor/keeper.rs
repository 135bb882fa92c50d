//! The keeper of a node: it holds the streams, terminals and pidfds of containers, so that they are there after the
//! runtime and a supervisor were killed together.
//!
//! A pipe ends with the last process that has it open, and with it all that was printed and not read yet. The runtime
//! holds what its supervisors hold; this process holds it too, for the whole node. It ends when it holds nothing.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{Belongings, FromKeeper, ToKeeper, decode, encode};
use coracle_supervisor::socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SocketFlags, accept_with};

use crate::service::{detach, take_listener};
use crate::sys;

/// The argument that asks for this.
pub(crate) const MODE: &str = "keep";

#[derive(Default)]
struct Keeper {
    /// By container.
    held: BTreeMap<String, (Belongings, Vec<OwnedFd>)>,
    connections: Vec<OwnedFd>,
    /// It was told to let go of the last that it held.
    over: bool,
}

/// Serves the socket that is our standard input. Somebody is connected to it when we begin.
pub(crate) fn run(cgroups: &[&str]) -> io::Result<()> {
    detach(c"coracle-keep", cgroups)?;
    // All signals are blocked from here on, and none is looked at: nothing but a kill ends us.
    let _signals = sys::take_signals()?;
    let (_, most) = sys::limit(libc::RLIMIT_NOFILE)?;
    sys::set_limit(libc::RLIMIT_NOFILE, most, most)?;
    let listener = take_listener()?;
    let mut keeper = Keeper::default();
    while !keeper.over {
        let all = std::iter::once(&listener).chain(&keeper.connections);
        let mut events: Vec<PollFd<'_>> = all.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        match poll(&mut events, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let ready: Vec<bool> = events.iter().map(|event| !event.revents().is_empty()).collect();
        keeper.converse(&ready[1..]);
        if ready[0] {
            while let Ok(connection) = accept_with(&listener, SocketFlags::CLOEXEC) {
                keeper.connections.push(connection);
            }
        }
        keeper.over |= keeper.held.is_empty() && keeper.connections.is_empty();
    }
    Ok(())
}

impl Keeper {
    /// Answers one message of each connection that has one, and forgets those who are gone.
    fn converse(&mut self, ready: &[bool]) {
        let mut still_there = Vec::new();
        for (connection, ready) in std::mem::take(&mut self.connections).into_iter().zip(ready) {
            if !ready || self.answer(&connection).is_ok() {
                still_there.push(connection);
            }
        }
        self.connections = still_there;
    }

    /// An error when nobody is at the other end any more, or nobody who makes sense.
    fn answer(&mut self, connection: &OwnedFd) -> io::Result<()> {
        let (message, descriptors) = socket::receive(connection)?.ok_or(io::ErrorKind::ConnectionReset)?;
        match decode(&message).map_err(io::Error::other)? {
            ToKeeper::Hold { belongings } => {
                self.held.insert(belongings.container.clone(), (belongings, descriptors));
            }
            ToKeeper::Release { container } => {
                self.held.remove(&container);
                self.over = self.held.is_empty();
                let left = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
                socket::send(connection, &encode(&FromKeeper::Released { left }), &[])?;
            }
            ToKeeper::Return {} => {
                for (belongings, descriptors) in self.held.values() {
                    let copies: Vec<_> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
                    let message = encode(&FromKeeper::Returned { belongings: belongings.clone() });
                    socket::send(connection, &message, &copies)?;
                }
                let pid = rustix::process::getpid().as_raw_nonzero().get();
                socket::send(connection, &encode(&FromKeeper::Done { pid }), &[])?;
            }
        }
        Ok(())
    }
}
