//! The packet filter nftables.
//!
//! A [`Batch`] has changes as [`Command`]s on tables, chains ([`Rule`]s of [`Statement`]s) and
//! [`Set`]s; [`Nftables::apply`] has the kernel make all of them at once, or none. `encode` makes
//! messages of a batch, `expressions` and `values` what is in them, `kernel` has the numbers. A
//! batch prints itself in the language of the program `nft` (`text`), in which errors name the
//! command that was refused; tests compare what the kernel then has by either way. Only what we
//! use is here: to add a statement, add it to [`Statement`], `text` and `expressions`.
//! [`Watch`] tells when another process deletes a table.

mod batch;
mod encode;
mod expressions;
mod kernel;
mod rule;
mod set;
mod text;
mod values;
mod watch;

use std::io;

use rustix::io::Errno;
use rustix::net::netlink;

pub use batch::{Batch, Command};
pub use rule::{
    ChainKind, Direction, End, Family, Field, Hook, Point, Rule, Statement, Table, Test, Verdict,
};
pub use set::{Data, Element, Protocol, Set, SetKind, Type, Value};
pub use watch::Watch;

use crate::NetlinkError;
use crate::message::{Attributes, find, number, text};
use crate::socket::{Request, Socket, UNSUPPORTED, is_one_of};
use kernel::message;

/// The packet filter of one network namespace.
pub struct Nftables {
    socket: Socket,
}

/// The number of a state of all tables: each change makes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u32);

/// A rule that the kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRule {
    /// Identifies it in its table.
    pub handle: u64,
    pub comment: Option<String>,
}

/// Why nftables was not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NftablesError {
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The first of the commands that the kernel refused. Nothing was changed.
    #[error("the kernel refused the nftables command `{command}`{said}")]
    Refused {
        command: String,
        /// What the kernel says, in parentheses, or empty.
        said: String,
        source: io::Error,
    },
    /// The kernel refused all. Nothing was changed.
    #[error("cannot change nftables ({bytes} bytes of commands)")]
    Unsent { bytes: usize, source: io::Error },
    /// Nothing was changed: read again.
    #[error("nftables was changed by another process at the same time")]
    Stale,
}

impl NftablesError {
    /// The kernel was built without nftables, or without this family.
    pub fn is_unsupported(&self) -> bool {
        match self {
            NftablesError::Netlink(error) => error.is_unsupported(),
            NftablesError::Refused { source, .. } | NftablesError::Unsent { source, .. } => {
                is_one_of(source, &UNSUPPORTED)
            }
            NftablesError::Stale => false,
        }
    }

    /// A table, chain, set or element does not exist.
    pub fn is_absent(&self) -> bool {
        match self {
            NftablesError::Netlink(error) => error.is_absent(),
            NftablesError::Refused { source, .. } => is_one_of(source, &[Errno::NOENT]),
            _ => false,
        }
    }
}

impl Nftables {
    /// Opens a socket in this thread's namespace.
    pub fn open() -> Result<Nftables, NftablesError> {
        let socket = Socket::open(Some(netlink::NETFILTER))?;
        Ok(Nftables { socket })
    }

    /// Makes all changes of the batch at once, or none.
    pub fn apply(&mut self, batch: &Batch) -> Result<(), NftablesError> {
        self.submit(batch, None)
    }

    /// The same, if nothing was changed by anyone since that generation.
    pub fn apply_at(&mut self, batch: &Batch, at: Generation) -> Result<(), NftablesError> {
        self.submit(batch, Some(at))
    }

    fn submit(&mut self, batch: &Batch, at: Option<Generation>) -> Result<(), NftablesError> {
        if batch.is_empty() {
            return Ok(());
        }

        let first = self.socket.next_sequence();
        let encoded = encode::encode(batch, first, at);
        let more = u32::try_from(encoded.count()).expect("a batch fits into a datagram");
        self.socket.take_sequences(more);

        let unsent = |errno: Errno| NftablesError::Unsent {
            bytes: encoded.messages.bytes().len(),
            source: errno.into(),
        };
        let refusals = self.socket.submit(&encoded.messages).map_err(unsent)?;
        let refusals = refusals
            .into_iter()
            .filter(|refusal| refusal.sequence.wrapping_sub(first) < more);

        let Some(refusal) = refusals.min_by_key(|refusal| refusal.sequence.wrapping_sub(first))
        else {
            return Ok(());
        };
        if at.is_some() && refusal.errno.raw_os_error() == libc::ERESTART {
            return Err(NftablesError::Stale);
        }

        match encoded.command(batch, refusal.sequence, refusal.offset) {
            None => Err(unsent(refusal.errno)),
            Some((table, command)) => Err(NftablesError::Refused {
                command: text::Line(&table, &command).to_string(),
                said: refusal
                    .said
                    .map_or_else(String::new, |said| format!(" ({said})")),
                source: refusal.errno.into(),
            }),
        }
    }

    /// The current generation.
    pub fn generation(&mut self) -> Result<Generation, NftablesError> {
        let found = self.ask(
            "read the nftables generation",
            (message::GET_GENERATION, libc::NLM_F_ACK),
            0,
            |_| {},
        )?;
        let generation = found
            .iter()
            .find_map(|body| find(body.get(FIXED..)?, kernel::generation::ID));
        Ok(Generation(generation.map_or(0, number)))
    }

    /// Whether a table exists. A kernel without nftables has none.
    pub fn has_table(&mut self, table: &Table) -> Result<bool, NftablesError> {
        let asked = self.ask(
            "look up an nftables table",
            (message::GET_TABLE, libc::NLM_F_ACK),
            kernel::family(table.family),
            |out| out.text(kernel::table::NAME, &table.name),
        );
        match asked {
            Ok(_) => Ok(true),
            Err(error) if error.is_absent() || error.is_unsupported() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a table, if it exists.
    fn remove(&mut self, table: &Table) -> Result<(), NftablesError> {
        let mut batch = Batch::new();
        batch.push(table, Command::DeleteTable);
        match self.apply(&batch) {
            Err(error) if error.is_absent() => Ok(()),
            done => done,
        }
    }

    /// Whether a chain exists and drops packets that no rule decides about.
    pub fn drops(&mut self, table: &Table, chain: &str) -> Result<bool, NftablesError> {
        let asked = self.ask(
            "look up an nftables chain",
            (message::GET_CHAIN, libc::NLM_F_ACK),
            kernel::family(table.family),
            |out| {
                out.text(kernel::chain::TABLE, &table.name);
                out.text(kernel::chain::NAME, chain);
            },
        );

        let found = match asked {
            Err(error) if error.is_absent() || error.is_unsupported() => return Ok(false),
            found => found?,
        };
        let policy = found
            .iter()
            .find_map(|body| find(body.get(FIXED..)?, kernel::chain::POLICY));

        Ok(policy.map(number) == Some(kernel::data::DROP))
    }

    /// The rules of a chain, in order; none if it does not exist.
    pub fn rules(&mut self, table: &Table, chain: &str) -> Result<Vec<ListedRule>, NftablesError> {
        let asked = self.ask(
            "list nftables rules",
            (message::GET_RULE, libc::NLM_F_DUMP),
            kernel::family(table.family),
            |out| {
                out.text(kernel::rule::TABLE, &table.name);
                out.text(kernel::rule::CHAIN, chain);
            },
        );

        match asked {
            Err(error) if error.is_absent() || error.is_unsupported() => Ok(Vec::new()),
            found => Ok(found?
                .iter()
                .filter_map(|body| listed_rule(body.get(FIXED..)?, table, chain))
                .collect()),
        }
    }

    fn ask(
        &mut self,
        action: &'static str,
        (kind, flags): (u16, i32),
        family: u8,
        fill: impl Fn(&mut Attributes<'_>),
    ) -> Result<Vec<Vec<u8>>, NftablesError> {
        let request = Request {
            action,
            kind: kernel::SUBSYSTEM << 8 | kind,
            flags,
            fixed: &[family, 0, 0, 0],
        };
        Ok(self.socket.ask(&request, fill)?)
    }
}

/// Deletes a table of this thread's namespace, if it exists. A kernel without nftables has none.
pub fn remove(table: &Table) -> Result<(), NftablesError> {
    match Nftables::open().and_then(|mut nftables| nftables.remove(table)) {
        Err(error) if error.is_unsupported() => Ok(()),
        done => done,
    }
}

/// How long the fixed part of a message is.
const FIXED: usize = 4;

/// The fixed part of messages: family, version, nothing.
fn fixed(family: Family) -> [u8; FIXED] {
    [kernel::family(family), 0, 0, 0]
}

/// The kernel lists rules of other chains as well where it does not know the filter.
fn listed_rule(attributes: &[u8], table: &Table, chain: &str) -> Option<ListedRule> {
    let is = |kind, name: &str| find(attributes, kind).map(text) == Some(name.as_bytes());
    if !is(kernel::rule::TABLE, &table.name) || !is(kernel::rule::CHAIN, chain) {
        return None;
    }

    let handle = find(attributes, kernel::rule::HANDLE)?.first_chunk()?;
    Some(ListedRule {
        handle: u64::from_be_bytes(*handle),
        comment: find(attributes, kernel::rule::USER_DATA).and_then(comment),
    })
}

/// The comment in a rule's user data: entries of type, length and value.
fn comment(mut data: &[u8]) -> Option<String> {
    while let [kind, length, rest @ ..] = data {
        let (value, after) = rest.split_at_checked(usize::from(*length))?;
        if *kind == kernel::rule::COMMENT {
            return Some(String::from_utf8_lossy(text(value)).into_owned());
        }
        data = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_behind_other_data() {
        assert_eq!(comment(b"\x00\x04abc\x00").as_deref(), Some("abc"));
        assert_eq!(
            comment(b"\x01\x02xx\x00\x04abc\x00").as_deref(),
            Some("abc")
        );
        assert_eq!(comment(b"\x00\x09abc\x00"), None);
        assert_eq!(comment(b""), None);
    }
}
