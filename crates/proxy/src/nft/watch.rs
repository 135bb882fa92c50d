//! Detects deletion of the tables by others, such as `nft flush ruleset`.
//!
//! The kernel reports every change of nftables, including our own. Only tables of our name matter:
//! one that was deleted and not created again was deleted by another process. If notifications were
//! lost, the tables are listed instead.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, netlink};
use tokio::io::unix::AsyncFd;

use super::{Dialect, run, sys, word};

/// Watches the tables of one instance.
pub(crate) struct Watch {
    socket: AsyncFd<OwnedFd>,
    dialect: Dialect,
}

/// The nftables multicast group.
const GROUP: u32 = 1 << 6;
/// From the kernel's headers: subsystem and table messages.
const SUBSYSTEM: u16 = 10 << 8;
const NEW_TABLE: u16 = SUBSYSTEM;
const DELETED_TABLE: u16 = SUBSYSTEM | 2;
/// Offset of the name: after the header and four bytes with the family.
const NAME: usize = 16 + 4 + 4;
const MAX_MESSAGE: usize = 64 * 1024;

impl Watch {
    /// In this thread's namespace.
    pub(crate) fn open(dialect: Dialect) -> io::Result<Watch> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, protocol) = (AddressFamily::NETLINK, Some(netlink::NETFILTER));
        let socket = rustix::net::socket_with(family, SocketType::RAW, flags, protocol)?;
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, GROUP))?;
        Ok(Watch {
            socket: sys::readable(socket)?,
            dialect,
        })
    }

    /// Waits until a table is deleted. Pending notifications are read first, so it must not run
    /// during a sync.
    ///
    /// # Cancellation
    /// A deletion may have to be detected again.
    pub(crate) async fn table_deleted(&self) {
        loop {
            let Ok(mut ready) = self.socket.readable().await else {
                return std::future::pending().await;
            };
            let result = ready.try_io(|socket| Ok(self.read(socket.get_ref())));
            if let Ok(Ok(true)) = result {
                return;
            }
            ready.clear_ready();
        }
    }

    /// Reads all pending messages; returns whether a table is deleted at the end.
    fn read(&self, socket: &OwnedFd) -> bool {
        let mut gone = false;
        let mut buffer = vec![0; MAX_MESSAGE];
        loop {
            match rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty()) {
                Ok((length, _)) => {
                    if let Some(last) = last_state(&buffer[..length], self.dialect.table.as_bytes())
                    {
                        gone = last;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => gone = !self.exists(),
                Err(_) => return gone,
            }
        }
    }

    fn exists(&self) -> bool {
        let tables = run(&["list", "tables"], "").unwrap_or_default();
        let listed = |family| {
            tables
                .lines()
                .any(|line| line == format!("table {} {}", word(family), self.dialect.table))
        };
        self.dialect.families.iter().all(|family| listed(*family))
    }
}

/// Whether the last message about a table of this name is a deletion; none: there is no such
/// message.
fn last_state(mut bytes: &[u8], table: &[u8]) -> Option<bool> {
    let mut last = None;
    while let Some(length) = bytes.first_chunk().map(|four| u32::from_ne_bytes(*four)) {
        let Some(message) = usize::try_from(length)
            .ok()
            .and_then(|length| bytes.get(..length))
        else {
            break;
        };

        if message.len() < NAME {
            break;
        }

        let kind = u16::from_ne_bytes([message[4], message[5]]);
        let name = message[NAME..].split(|byte| *byte == 0).next();
        if matches!(kind, NEW_TABLE | DELETED_TABLE) && name == Some(table) {
            last = Some(kind == DELETED_TABLE);
        }

        bytes = bytes
            .get(message.len().next_multiple_of(4)..)
            .unwrap_or(&[]);
    }

    last
}
