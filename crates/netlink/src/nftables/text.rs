//! Batches in the language of the program `nft`: for error messages, and to compare what the
//! kernel got with what that program would have sent.

use std::fmt::{self, Display, Formatter, Write as _};

use super::batch::{Batch, Command};
use super::rule::{
    ChainKind, Direction, End, Family, Field, Hook, Point, Rule, Statement, Table, Test, Verdict,
};
use super::set::{Data, Element, Protocol, Set, SetKind, Type, Value};
use crate::Version;

impl Display for Batch {
    /// One command per line.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.commands()
            .iter()
            .try_for_each(|(table, command)| writeln!(out, "{}", Line(table, command)))
    }
}

/// One command.
pub(super) struct Line<'a>(pub(super) &'a Table, pub(super) &'a Command);

impl Display for Line<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Line(table, command) = self;
        match command {
            Command::AddTable => write!(out, "add table {table}"),
            Command::DeleteTable => write!(out, "delete table {table}"),
            Command::AddChain { name, hook: None } => write!(out, "add chain {table} {name}"),
            Command::AddChain {
                name,
                hook: Some(hook),
            } => write!(out, "add chain {table} {name} {{ {hook} }}"),
            Command::FlushChain { name } => write!(out, "flush chain {table} {name}"),
            Command::DeleteChain { name } => write!(out, "delete chain {table} {name}"),
            Command::AddRule { chain, rule } => write!(out, "add rule {table} {chain} {rule}"),
            Command::InsertRule { chain, rule } => {
                write!(out, "insert rule {table} {chain} {rule}")
            }
            Command::DeleteRule { chain, handle } => {
                write!(out, "delete rule {table} {chain} handle {handle}")
            }
            Command::AddSet(set) => write!(out, "add {} {table} {}", set_word(set), set),
            Command::DeleteSet { name } => write!(out, "delete set {table} {name}"),
            Command::AddElements { set, elements } => {
                write!(out, "add element {table} {set} {{ {} }}", List(elements))
            }
            Command::DeleteElements { set, elements } => {
                write!(out, "delete element {table} {set} {{ {} }}", List(elements))
            }
        }
    }
}

fn set_word(set: &Set) -> &'static str {
    match set.kind {
        SetKind::Verdicts | SetKind::Map(_) => "map",
        _ => "set",
    }
}

/// Separated by commas.
struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        separated(out, ", ", self.0)
    }
}

/// The parts of a key, separated by dots.
struct Key<'a, T>(&'a [T]);

impl<T: Display> Display for Key<'_, T> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        separated(out, " . ", self.0)
    }
}

fn separated(out: &mut Formatter<'_>, by: &str, all: &[impl Display]) -> fmt::Result {
    for (number, one) in all.iter().enumerate() {
        if number > 0 {
            out.write_str(by)?;
        }
        write!(out, "{one}")?;
    }
    Ok(())
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::Ip(version) => ip(version),
            Family::Inet => "inet",
        };
        write!(out, "{family} {}", self.name)
    }
}

fn ip(version: Version) -> &'static str {
    match version {
        Version::V4 => "ip",
        Version::V6 => "ip6",
    }
}

impl Display for Hook {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ChainKind::Filter => "filter",
            ChainKind::Nat => "nat",
        };

        let point = match self.point {
            Point::Prerouting => "prerouting",
            Point::Input => "input",
            Point::Forward => "forward",
            Point::Output => "output",
            Point::Postrouting => "postrouting",
        };

        let priority = self.priority;
        write!(
            out,
            "type {kind} hook {point} priority {priority}; policy accept;"
        )
    }
}

impl Display for Set {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} {{ type {}", self.name, Key(&self.key))?;
        match &self.kind {
            SetKind::Values => out.write_str("; }"),
            SetKind::Ranges => out.write_str("; flags interval; }"),
            SetKind::Recent(time) => {
                let seconds = time.as_secs();
                write!(out, "; flags dynamic,timeout; timeout {seconds}s; }}")
            }
            SetKind::Verdicts => out.write_str(" : verdict; }"),
            SetKind::Map(values) => write!(out, " : {}; }}", Key(values)),
        }
    }
}

impl Display for Type {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Type::Address(Version::V4) => "ipv4_addr",
            Type::Address(Version::V6) => "ipv6_addr",
            Type::Protocol => "inet_proto",
            Type::Port => "inet_service",
        })
    }
}

impl Display for Element {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", Key(&self.key))?;
        match &self.data {
            None => Ok(()),
            Some(Data::Verdict(verdict)) => write!(out, " : {verdict}"),
            Some(Data::Values(values)) => write!(out, " : {}", Key(values)),
        }
    }
}

impl Display for Value {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Address(address) => write!(out, "{address}"),
            Value::Range(range) => write!(out, "{range}"),
            Value::Protocol(protocol) => write!(out, "{protocol}"),
            Value::Port(port) => write!(out, "{port}"),
        }
    }
}

impl Display for Protocol {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        })
    }
}

impl Display for Rule {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        separated(out, " ", &self.statements)?;
        match &self.comment {
            None => Ok(()),
            Some(comment) => write!(out, " comment \"{comment}\""),
        }
    }
}

impl Display for Field {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Field::Source(version) => write!(out, "{} saddr", ip(*version)),
            Field::Destination(version) => write!(out, "{} daddr", ip(*version)),
            Field::Protocol => out.write_str("meta l4proto"),
            Field::DestinationPort => out.write_str("th dport"),
        }
    }
}

impl Display for Test {
    /// With a space before what it compares with.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Test::Is => out.write_char(' '),
            Test::IsNot => out.write_str(" != "),
        }
    }
}

fn interface(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "iifname",
        Direction::Out => "oifname",
    }
}

impl Display for Statement {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Version(Version::V4) => out.write_str("meta nfproto ipv4"),
            Statement::Version(Version::V6) => out.write_str("meta nfproto ipv6"),
            Statement::Protocols(protocols) => match protocols.as_slice() {
                [one] => write!(out, "meta l4proto {one}"),
                some => write!(out, "meta l4proto {{ {} }}", List(some)),
            },
            Statement::Port(protocol, port) => write!(out, "{protocol} dport {port}"),
            Statement::Ranges(field, test, ranges) => match ranges.as_slice() {
                [one] => write!(out, "{field}{test}{one}"),
                some => write!(out, "{field}{test}{{ {} }}", List(some)),
            },
            Statement::InSet(key, test, set) => write!(out, "{}{test}@{set}", Key(key)),
            Statement::Interface(direction, test, name) => {
                write!(out, "{}{test}\"{name}\"", interface(*direction))
            }
            Statement::InterfacePrefix(direction, test, prefix) => {
                write!(out, "{}{test}\"{prefix}*\"", interface(*direction))
            }
            Statement::NewConnection => out.write_str("ct state new"),
            Statement::Redirected => out.write_str("ct status dnat"),
            Statement::Local(End::Source) => out.write_str("fib saddr type local"),
            Statement::Local(End::Destination) => out.write_str("fib daddr type local"),
            Statement::AnyMark(bits) => write!(out, "meta mark and {bits:#x} != 0"),
            Statement::AllMarks(bits) => write!(out, "meta mark and {bits:#x} == {bits:#x}"),
            Statement::SetMark(bits) => write!(out, "meta mark set meta mark or {bits:#x}"),
            Statement::ToggleMark(bits) => write!(out, "meta mark set meta mark xor {bits:#x}"),
            Statement::Remember { set, field } => write!(out, "update @{set} {{ {field} }}"),
            Statement::Lookup(key, map) => write!(out, "{} vmap @{map}", Key(key)),
            Statement::Random(chains) => random(out, chains),
            Statement::Redirect(to) => {
                write!(out, "dnat {} to {to}", ip(Version::of(to.ip())))
            }
            Statement::RedirectBy { version, key, map } => {
                write!(out, "dnat {} to {} map @{map}", ip(*version), Key(key))
            }
            Statement::Masquerade { random_port: false } => out.write_str("masquerade"),
            Statement::Masquerade { random_port: true } => out.write_str("masquerade fully-random"),
            Statement::Reject => out.write_str("reject"),
            Statement::Reset => out.write_str("reject with tcp reset"),
            Statement::Verdict(verdict) => write!(out, "{verdict}"),
        }
    }
}

fn random(out: &mut Formatter<'_>, chains: &[String]) -> fmt::Result {
    write!(out, "numgen random mod {} vmap {{ ", chains.len())?;
    for (number, chain) in chains.iter().enumerate() {
        let separator = if number > 0 { ", " } else { "" };
        write!(out, "{separator}{number} : goto {chain}")?;
    }
    out.write_str(" }")
}

impl Display for Verdict {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Accept => out.write_str("accept"),
            Verdict::Drop => out.write_str("drop"),
            Verdict::Jump(chain) => write!(out, "jump {chain}"),
            Verdict::Goto(chain) => write!(out, "goto {chain}"),
        }
    }
}
