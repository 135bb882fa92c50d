//! An rtnetlink connection.
//!
//! It belongs to the network namespace of the thread that opened it, whichever thread uses it
//! later. So a pod's namespace is configured through a connection opened there by a short-lived
//! thread ([`Connection::open_in`]), and no long-lived thread ever enters another namespace.

mod addresses;
mod links;
mod message;

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub(crate) use links::{MAX_NAME, Mac, Peer, is_name};
use message::{Message, answers};

/// Size of the largest response.
const MAX_RESPONSE: usize = 64 * 1024;

pub(crate) struct Connection {
    socket: OwnedFd,
    sequence: u32,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    #[error("cannot use the rtnetlink socket")]
    Unreachable(#[source] std::io::Error),
    #[error("cannot enter the pod's network namespace")]
    Namespace(#[source] std::io::Error),
    #[error("cannot {action}")]
    Refused {
        action: &'static str,
        source: std::io::Error,
    },
}

impl NetlinkError {
    fn refused(action: &'static str, errno: Errno) -> Self {
        NetlinkError::Refused {
            action,
            source: errno.into(),
        }
    }

    /// The object does not exist.
    pub(crate) fn is_absent(&self) -> bool {
        let absent =
            [Errno::NODEV, Errno::NOENT, Errno::SRCH, Errno::ADDRNOTAVAIL].map(Errno::raw_os_error);
        matches!(self, NetlinkError::Refused { source, .. } if source.raw_os_error().is_some_and(|code| absent.contains(&code)))
    }

    /// The object already exists.
    pub(crate) fn is_present(&self) -> bool {
        matches!(self, NetlinkError::Refused { source, .. } if source.raw_os_error() == Some(Errno::EXIST.raw_os_error()))
    }
}

impl Connection {
    /// Connects to this thread's namespace.
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let unreachable = |errno: Errno| NetlinkError::Unreachable(errno.into());
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None, // NETLINK_ROUTE
        )
        .map_err(unreachable)?;
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, 0)).map_err(unreachable)?;

        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Connects to a pod's namespace. Interfaces created there later ignore router advertisements.
    pub(crate) fn open_in(namespace: &File) -> Result<Self, NetlinkError> {
        let enter = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|errno| NetlinkError::Namespace(errno.into()))?;
            refuse_router_advertisements("default");
            Self::open()
        };

        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("podnet-enter".to_owned());
            let entered = thread
                .spawn_scoped(scope, enter)
                .map_err(NetlinkError::Namespace)?;
            entered
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Requests a change and waits for the acknowledgement.
    fn change(&mut self, action: &'static str, message: Message) -> Result<(), NetlinkError> {
        self.ask(action, message).map(drop)
    }

    /// Sends a request and returns the bodies of all responses.
    fn ask(
        &mut self,
        action: &'static str,
        message: Message,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = message.sealed(self.sequence);
        rustix::net::send(&self.socket, &request, SendFlags::empty())
            .map_err(|errno| NetlinkError::refused(action, errno))?;
        let mut found = Vec::new();

        let mut buffer = vec![0; MAX_RESPONSE];
        loop {
            let (length, _) =
                rustix::net::recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())
                    .map_err(|errno| NetlinkError::Unreachable(errno.into()))?;
            for answer in
                answers(&buffer[..length]).filter(|answer| answer.sequence == self.sequence)
            {
                match i32::from(answer.kind) {
                    libc::NLMSG_ERROR => {
                        return end_of_answers(action, answer.body).map(|()| found);
                    }
                    libc::NLMSG_DONE => return Ok(found),
                    _ => found.push(answer.body.to_vec()),
                }
            }
        }
    }
}

/// The final status: a negative error number, or zero.
fn end_of_answers(action: &'static str, body: &[u8]) -> Result<(), NetlinkError> {
    let code = body
        .first_chunk()
        .map_or(0, |four| i32::from_ne_bytes(*four));
    match code {
        0 => Ok(()),
        code => Err(NetlinkError::refused(
            action,
            Errno::from_raw_os_error(-code),
        )),
    }
}

/// A pod must not become the router of others on the bridge. The file does not exist without IPv6.
pub(crate) fn refuse_router_advertisements(interface: &str) {
    let setting = format!("/proc/sys/net/ipv6/conf/{interface}/accept_ra");
    if let Err(error) = fs::write(&setting, "0")
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, setting, "cannot disable router advertisements");
    }
}
