//! Interfaces, addresses, routes and neighbours, and what of them changes.
//!
//! A connection belongs to the network namespace of the thread that opened it, whichever thread
//! uses it later. So a pod's namespace is configured through a connection opened there by a
//! short-lived thread ([`Connection::open_in`]), and no long-lived thread ever enters another
//! namespace.

mod addresses;
mod links;
mod neighbours;
mod routes;
mod watch;

use std::fs::File;
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub use links::{Link, MAX_NAME, Mac, Peer, Vxlan, is_name};
pub use neighbours::{Neighbour, Tunnel};
pub use routes::{FoundRoute, Lookup, Route};
pub use watch::{Change, Watch};

use crate::NetlinkError;
use crate::message::Attributes;
use crate::socket::{Request, Socket};

pub struct Connection {
    socket: Socket,
}

impl Connection {
    /// Connects to this thread's namespace.
    pub fn open() -> Result<Self, NetlinkError> {
        let socket = Socket::open(None)?;
        Ok(Self { socket })
    }

    /// Connects to another namespace, where it calls `prepare` first.
    pub fn open_in(namespace: &File, prepare: impl FnOnce() + Send) -> Result<Self, NetlinkError> {
        let enter = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|errno| NetlinkError::Namespace(errno.into()))?;
            prepare();
            Self::open()
        };

        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("enter-netns".to_owned());
            let entered = thread
                .spawn_scoped(scope, enter)
                .map_err(NetlinkError::Namespace)?;
            entered
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Requests a change and waits for the acknowledgement.
    fn change(
        &mut self,
        action: &'static str,
        (kind, flags): (u16, i32),
        fixed: &[u8],
        fill: impl Fn(&mut Attributes<'_>),
    ) -> Result<(), NetlinkError> {
        self.ask(action, (kind, flags), fixed, fill).map(drop)
    }

    /// Sends a request and returns the bodies of all answers.
    fn ask(
        &mut self,
        action: &'static str,
        (kind, flags): (u16, i32),
        fixed: &[u8],
        fill: impl Fn(&mut Attributes<'_>),
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let request = Request {
            action,
            kind,
            flags,
            fixed,
        };
        self.socket.ask(&request, fill)
    }
}
