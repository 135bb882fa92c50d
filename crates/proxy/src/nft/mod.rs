//! Rules as nftables: one table per family, named after the instance, so that several clusters on
//! one machine do not conflict.
//!
//! The part that does not depend on Services is static (`skeleton.rs`); the rest are elements of
//! its maps (`elements.rs`) and a few chains (`chains.rs`). [`Writer`] makes one [`Batch`] of the
//! changes (`transaction.rs`), which is atomic, also when the first one replaces an older table.
//! The rules work without the process.

mod chains;
mod elements;
mod skeleton;
mod transaction;

use coracle_netlink::nftables::{
    Batch, Direction, Field, Nftables, NftablesError, Statement, Table, Test, Type,
};

pub use transaction::Writer;

use crate::rules::Family;

/// How the tables are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The name of the tables.
    pub table: String,
    /// The kernel's families.
    pub families: Vec<Family>,
    /// The mark bit of packets to masquerade.
    pub masquerade_bit: u32,
    /// Masquerade all traffic to cluster IPs.
    pub masquerade_all: bool,
    /// How traffic of local pods is detected.
    pub pods: Pods,
}

/// How traffic of local pods is detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pods {
    /// Not at all; then no traffic counts as external either.
    Unknown,
    /// By source, in these families.
    Ranges(Vec<Family>),
    /// By the input interface.
    Interface(String),
    /// By the prefix of the input interface's name.
    InterfacePrefix(String),
}

impl Dialect {
    /// The mark of packets to masquerade.
    fn mark(&self) -> u32 {
        1 << self.masquerade_bit.min(31)
    }

    /// The statement that marks a packet for masquerading.
    fn masquerade(&self) -> Statement {
        Statement::SetMark(self.mark())
    }

    /// Matches packets of local pods, or all others; none if unknown.
    fn of_pod(&self, family: Family, test: Test) -> Option<Statement> {
        match &self.pods {
            Pods::Unknown => None,
            Pods::Ranges(families) => families.contains(&family).then(|| {
                Statement::InSet(vec![Field::Source(family)], test, "pod-ranges".to_owned())
            }),
            Pods::Interface(name) => Some(Statement::Interface(Direction::In, test, name.clone())),
            Pods::InterfacePrefix(prefix) => Some(Statement::InterfacePrefix(
                Direction::In,
                test,
                prefix.clone(),
            )),
        }
    }

    /// The table of a family.
    pub(crate) fn table(&self, family: Family) -> Table {
        table(family, &self.table)
    }
}

pub(crate) fn table(family: Family, name: &str) -> Table {
    Table {
        family: coracle_netlink::nftables::Family::Ip(family),
        name: name.to_owned(),
    }
}

/// Where a packet goes: address, protocol, port.
fn frontend(family: Family) -> Vec<Field> {
    vec![
        Field::Destination(family),
        Field::Protocol,
        Field::DestinationPort,
    ]
}

/// The same without the address.
const NODE_PORT: [Field; 2] = [Field::Protocol, Field::DestinationPort];

/// The types of [`frontend`].
fn frontend_types(family: Family) -> Vec<Type> {
    vec![Type::Address(family), Type::Protocol, Type::Port]
}

/// The types of [`NODE_PORT`].
const NODE_PORT_TYPES: [Type; 2] = [Type::Protocol, Type::Port];

/// Applies changes in this thread's namespace, all or none.
pub fn apply(batch: &Batch) -> Result<(), NftablesError> {
    Nftables::open()?.apply(batch)
}
