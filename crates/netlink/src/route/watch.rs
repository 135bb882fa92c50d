//! Changes of interfaces, addresses, routes and neighbours, by whomever.

use std::io;
use std::os::fd::OwnedFd;

use ipnet::IpNet;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::unix::AsyncFd;

use crate::message::{Answer, answers, find, native, text};
use crate::{address, socket, sys};

/// Watches a network namespace.
pub struct Watch {
    socket: AsyncFd<OwnedFd>,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Link {
        index: u32,
        name: String,
    },
    Address {
        index: u32,
    },
    /// A route of the main table.
    Route {
        range: Option<IpNet>,
    },
    /// A neighbour or forwarding entry.
    Neighbour {
        index: u32,
        is_deleted: bool,
    },
    /// There were more changes than the kernel kept.
    Lost,
}

/// The groups of links, neighbours, and addresses and routes of both versions: a bit each.
const GROUPS: u32 = 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 10;
const MAX_MESSAGE: usize = 64 * 1024;

impl Watch {
    /// In this thread's namespace.
    pub fn open() -> io::Result<Watch> {
        let socket = socket::listen(None, GROUPS)?;
        Ok(Watch {
            socket: sys::readable(socket)?,
        })
    }

    /// Waits for changes, and returns all that are pending.
    ///
    /// # Cancellation
    /// Cancel-safe.
    pub async fn changes(&self) -> Vec<Change> {
        loop {
            let Ok(mut ready) = self.socket.readable().await else {
                return std::future::pending().await;
            };

            // It is read until it would block.
            let mut found = Vec::new();
            read(ready.get_ref().get_ref(), &mut found);
            ready.clear_ready();
            if !found.is_empty() {
                return found;
            }
        }
    }
}

/// Reads all pending messages.
fn read(socket: &OwnedFd, found: &mut Vec<Change>) {
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        match rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty()) {
            Ok((length, _)) => {
                found.extend(answers(&buffer[..length]).filter_map(|message| change(&message)));
            }
            Err(Errno::INTR) => {}
            Err(Errno::NOBUFS) => found.push(Change::Lost),
            Err(_) => return,
        }
    }
}

/// Of the fixed parts of messages.
const LINK_PART: usize = 16;
const ROUTE_PART: usize = 12;

fn change(message: &Answer<'_>) -> Option<Change> {
    let index = || message.body.get(4..).map(native);
    match message.kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => {
            let name = find(message.body.get(LINK_PART..)?, libc::IFLA_IFNAME).map(text);
            Some(Change::Link {
                index: index()?,
                name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
            })
        }
        libc::RTM_NEWADDR | libc::RTM_DELADDR => Some(Change::Address { index: index()? }),
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
            let (fixed, rest) = message.body.split_at_checked(ROUTE_PART)?;
            let range = find(rest, libc::RTA_DST)
                .and_then(address)
                .and_then(|address| IpNet::new(address, fixed[1]).ok());
            (fixed[4] == libc::RT_TABLE_MAIN).then_some(Change::Route { range })
        }
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => Some(Change::Neighbour {
            index: index()?,
            is_deleted: message.kind == libc::RTM_DELNEIGH,
        }),
        _ => None,
    }
}
