//! Detects deletion of tables by others, such as `nft flush ruleset`.
//!
//! The kernel reports every change of nftables, including our own. Only the tables asked for
//! matter: one that was deleted and not created again was deleted by another process. If
//! notifications were lost, the tables are looked up instead.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, netlink};
use tokio::io::unix::AsyncFd;

use super::kernel::{self, message, table};
use super::rule::Table;
use super::{FIXED, Nftables};
use crate::message::{answers, find, text};
use crate::{socket, sys};

/// Watches tables.
pub struct Watch {
    socket: AsyncFd<OwnedFd>,
    tables: Vec<Table>,
}

const NEW_TABLE: u16 = kernel::SUBSYSTEM << 8 | message::NEW_TABLE;
const DELETED_TABLE: u16 = kernel::SUBSYSTEM << 8 | message::DELETE_TABLE;
const MAX_MESSAGE: usize = 64 * 1024;

impl Watch {
    /// In this thread's namespace.
    pub fn open(tables: Vec<Table>) -> io::Result<Watch> {
        Ok(Watch {
            socket: sys::readable(socket::listen(Some(netlink::NETFILTER), kernel::CHANGES)?)?,
            tables,
        })
    }

    /// Waits until a table is deleted and not created again. Pending notifications are read first,
    /// so it must not run while a table is replaced.
    ///
    /// # Cancellation
    /// A deletion may have to be detected again.
    pub async fn table_deleted(&self) {
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
        let mut gone = vec![false; self.tables.len()];
        let mut buffer = vec![0; MAX_MESSAGE];
        loop {
            match rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty()) {
                Ok((length, _)) => note_changes(&buffer[..length], &self.tables, &mut gone),
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => gone = self.look_up(),
                Err(_) => return gone.contains(&true),
            }
        }
    }

    /// Which tables do not exist. What cannot be found out is taken for existing.
    fn look_up(&self) -> Vec<bool> {
        let mut nftables = Nftables::open().ok();
        self.tables
            .iter()
            .map(|table| {
                let has = nftables
                    .as_mut()
                    .and_then(|nftables| nftables.has_table(table).ok());
                has == Some(false)
            })
            .collect()
    }
}

/// Sets for each table whether the last message about it is a deletion.
fn note_changes(bytes: &[u8], tables: &[Table], gone: &mut [bool]) {
    for change in answers(bytes) {
        let is_deleted = match change.kind {
            NEW_TABLE => false,
            DELETED_TABLE => true,
            _ => continue,
        };

        let Some((fixed, attributes)) = change.body.split_at_checked(FIXED) else {
            continue;
        };
        let name = find(attributes, table::NAME).map(text);

        for (table, gone) in tables.iter().zip(&mut *gone) {
            if fixed[0] == kernel::family(table.family) && name == Some(table.name.as_bytes()) {
                *gone = is_deleted;
            }
        }
    }
}
