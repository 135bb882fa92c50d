//! Sets, maps and their elements.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::rule::Verdict;
use crate::Version;

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

/// A set or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub name: String,
    /// The types of the key's parts.
    pub key: Vec<Type>,
    pub kind: SetKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// Of single values.
    Values,
    /// Of values whose last part may be a range of addresses.
    Ranges,
    /// Of values that rules add, and that are removed after a time.
    Recent(Duration),
    /// From values to verdicts.
    Verdicts,
    /// From values to values.
    Map(Vec<Type>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Address(Version),
    Protocol,
    Port,
}

/// An element of a set or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    pub key: Vec<Value>,
    /// None in a set.
    pub data: Option<Data>,
}

/// What a map has for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    Verdict(Verdict),
    Values(Vec<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Address(IpAddr),
    /// Only in sets of ranges.
    Range(IpNet),
    Protocol(Protocol),
    Port(u16),
}
