//! Tables, chains and rules.

use std::net::SocketAddr;

use ipnet::IpNet;

use super::set::Protocol;
use crate::Version;

/// The kind of packets a table sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    Ip(Version),
    /// Both versions.
    Inet,
}

/// A table: its family and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    pub family: Family,
    pub name: String,
}

/// Where the kernel enters a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    pub kind: ChainKind,
    pub point: Point,
    pub priority: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainKind {
    Filter,
    Nat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    Prerouting,
    Input,
    Forward,
    Output,
    Postrouting,
}

/// The statements of a rule, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub statements: Vec<Statement>,
    pub comment: Option<String>,
}

impl Rule {
    pub fn new(statements: impl IntoIterator<Item = Statement>) -> Rule {
        Rule {
            statements: statements.into_iter().collect(),
            comment: None,
        }
    }
}

/// A part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Source(Version),
    Destination(Version),
    Protocol,
    DestinationPort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Destination,
}

/// How a match compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Is,
    IsNot,
}

/// A match, or what happens to packets that matched so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// The IP version.
    Version(Version),
    /// One of these transport protocols.
    Protocols(Vec<Protocol>),
    /// The transport protocol and the destination port.
    Port(Protocol, u16),
    /// An address is in one of these ranges, of which there is at least one.
    Ranges(Field, Test, Vec<IpNet>),
    /// The parts of the packet are an element of the set.
    InSet(Vec<Field>, Test, String),
    /// The interface's name.
    Interface(Direction, Test, String),
    /// The beginning of the interface's name.
    InterfacePrefix(Direction, Test, String),
    /// A new connection.
    NewConnection,
    /// A connection whose destination was translated.
    Redirected,
    /// An address of this machine.
    Local(End),
    /// The packet's mark has any of these bits.
    AnyMark(u32),
    /// The packet's mark has all of these bits.
    AllMarks(u32),

    /// Sets bits of the packet's mark.
    SetMark(u32),
    /// Toggles bits of the packet's mark.
    ToggleMark(u32),
    /// Adds an address to a set, or renews it there.
    Remember {
        set: String,
        field: Field,
    },
    /// Takes the verdict that the map has for these parts of the packet, if it has one.
    Lookup(Vec<Field>, String),
    /// Goes to one of these chains at random.
    Random(Vec<String>),
    /// Translates the destination.
    Redirect(SocketAddr),
    /// Translates the destination to the address and port that the map has for these parts.
    RedirectBy {
        version: Version,
        key: Vec<Field>,
        map: String,
    },
    /// Translates the source to the address of the outgoing interface; from a random port if so.
    Masquerade {
        random_port: bool,
    },
    /// Answers with an ICMP error.
    Reject,
    /// Answers with a TCP reset.
    Reset,
    Verdict(Verdict),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    Drop,
    Jump(String),
    Goto(String),
}
