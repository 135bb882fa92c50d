//! The event loop: connections, signals, starting processes, and output.
//!
//! Requests ([`requests`]) start operations and remember the requester; events of processes
//! ([`processes`]) and streams ([`streams`]) produce the replies. Containers of a previous
//! supervisor are taken over first ([`adopt`]). Every watched descriptor has a token and a
//! [`Source`].

mod adopt;
mod connection;
mod processes;
mod requests;
mod streams;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use coracle_supervisor::protocol::{Failure, FromSupervisor, Reply, encode};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{SocketFlags, accept_with};
use rustix::process::set_child_subreaper;

use crate::container::{Container, Requester};
use crate::service::{detach, take_listener};
use crate::sys;
use connection::Connection;
pub(crate) use processes::exit_code;
use processes::{Exec, Pause};

/// The source of an event.
#[derive(Clone)]
enum Source {
    Listener,
    Signals,
    Connection,
    ContainerSync {
        id: String,
    },
    ExecSync {
        pid: i32,
    },
    PauseSync,
    Output {
        id: String,
        index: usize,
    },
    Attachment {
        id: String,
        index: usize,
    },
    /// The first process of an adopted container.
    Adopted {
        id: String,
    },
    AdoptedPause,
}

struct Server {
    /// The pod's folder.
    pod: String,
    epoll: OwnedFd,
    listener: OwnedFd,
    signals: OwnedFd,
    sources: BTreeMap<u64, Source>,
    next_token: u64,
    connections: BTreeMap<u64, Connection>,
    /// Boxed: a B-tree node allocates eleven entries, and a pod has one or two.
    containers: BTreeMap<String, Box<Container>>,
    /// By pid.
    execs: BTreeMap<i32, Exec>,
    pause: Option<Pause>,
    quitting: bool,
}

/// Serves the socket on standard input, until a `Quit` request.
pub(crate) fn run(pod: &str) -> io::Result<()> {
    detach(c"coracle-pod", &[])?;
    let mut server = Server::new(pod)?;
    server.adopt_all();

    let mut events = Vec::with_capacity(64);
    while !server.quitting {
        events.clear();
        let timeout = server.disconnect_stalled();
        match epoll::wait(
            &server.epoll,
            rustix::buffer::spare_capacity(&mut events),
            timeout.as_ref(),
        ) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };

        for event in &events {
            let token = event.data.u64();
            if let Some(source) = server.sources.get(&token).cloned() {
                server.handle(token, &source, event.flags);
            }
        }
    }

    Ok(())
}

impl Server {
    fn new(pod: &str) -> io::Result<Self> {
        set_child_subreaper(Some(rustix::process::getpid()))?;
        let listener = take_listener()?;
        let mut server = Self {
            pod: pod.to_owned(),
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            listener,
            signals: sys::take_signals()?,
            sources: BTreeMap::new(),
            next_token: 1,
            connections: BTreeMap::new(),
            containers: BTreeMap::new(),
            execs: BTreeMap::new(),
            pause: None,
            quitting: false,
        };

        let (listener, signals) = (server.listener.try_clone()?, server.signals.try_clone()?);
        server.watch(listener.as_fd(), Source::Listener, EventFlags::IN)?;

        server.watch(signals.as_fd(), Source::Signals, EventFlags::IN)?;

        Ok(server)
    }

    fn handle(&mut self, token: u64, source: &Source, flags: EventFlags) {
        match source {
            Source::Listener => self.accept(),
            Source::Signals => self.reap(),
            Source::Connection => self.handle_messages(token, flags),
            Source::ContainerSync { id } => self.container_progress(id),
            Source::ExecSync { pid } => self.exec_progress(*pid),
            Source::PauseSync => self.pause_progress(),
            Source::Output { id, index } => self.pump(id, *index, token),
            Source::Attachment { id, index } => self.attachment_event(id, *index, token, flags),
            Source::Adopted { id } => self.adopted_ended(id),
            Source::AdoptedPause => self.adopted_pause_ended(token),
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            if let Ok(token) = self.watch(socket.as_fd(), Source::Connection, EventFlags::IN) {
                self.connections.insert(token, Connection::new(socket));
            }
        }
    }

    fn watch(
        &mut self,
        what: BorrowedFd<'_>,
        source: Source,
        flags: EventFlags,
    ) -> io::Result<u64> {
        let token = self.next_token;
        self.next_token += 1;
        epoll::add(&self.epoll, what, EventData::new_u64(token), flags)?;
        self.sources.insert(token, source);
        Ok(token)
    }

    /// Must be called before a descriptor is closed: a copy in another process would keep its
    /// events coming.
    fn unwatch(&mut self, what: BorrowedFd<'_>, token: u64) {
        self.sources.remove(&token);
        // Regular files are not in epoll.
        epoll::delete(&self.epoll, what).unwrap_or_default();
    }

    fn change(&self, what: BorrowedFd<'_>, token: u64, flags: EventFlags) {
        epoll::modify(&self.epoll, what, EventData::new_u64(token), flags).unwrap_or_default();
    }

    fn token_of(&self, wanted: impl Fn(&Source) -> bool) -> Option<u64> {
        self.sources
            .iter()
            .find(|(_, source)| wanted(source))
            .map(|(token, _)| *token)
    }

    fn reply(&mut self, requester: Requester, reply: Reply, descriptors: Vec<OwnedFd>) {
        let message = encode(&FromSupervisor {
            number: requester.number,
            reply,
        });
        self.send(requester.connection, message, descriptors);
    }

    fn refuse(&mut self, requester: Requester, failure: impl Into<Failure>) {
        self.reply(
            requester,
            Reply::Failed {
                failure: failure.into(),
            },
            Vec::new(),
        );
    }
}

/// A copy of a descriptor, to be sent.
fn copy(descriptor: &OwnedFd) -> Vec<OwnedFd> {
    descriptor.try_clone().into_iter().collect()
}
