//! The packet filter's part: what pods send out of the cluster gets the node's address, and what
//! they send from addresses that the node does not have is dropped.

use coracle_netlink::Version;
use coracle_netlink::nftables::{
    Batch, ChainKind, Command, Direction, Element, Family, Field, Hook, Point, Rule, Set, SetKind,
    Statement, Table, Test, Type, Value, Verdict,
};
use ipnet::IpNet;

use crate::plan::Masquerade;

pub(crate) fn table(name: &str) -> Table {
    Table {
        family: Family::Inet,
        name: name.to_owned(),
    }
}

/// Replaces the table. Without pods it is only deleted.
pub(crate) fn compile(name: &str, bridge: &str, masquerade: &Masquerade) -> Batch {
    let table = table(name);
    let mut batch = Batch::new();
    batch.delete_table(&table);

    let versions: Vec<Version> = Version::BOTH
        .into_iter()
        .filter(|version| of(*version, &masquerade.from).next().is_some())
        .collect();
    if versions.is_empty() {
        return batch;
    }

    batch.push(&table, Command::AddTable);
    for version in &versions {
        let own = of(*version, &masquerade.from).chain(always_own(*version));
        add_set(&mut batch, &table, own_set(*version), *version, own);
        let inside = of(*version, &masquerade.inside).chain([multicast(*version)]);
        add_set(&mut batch, &table, inside_set(*version), *version, inside);
    }

    add_chain(
        &mut batch,
        &table,
        "spoofed",
        Hook {
            kind: ChainKind::Filter,
            point: Point::Prerouting,
            priority: RAW,
        },
        versions.iter().map(|version| spoofed(*version, bridge)),
    );
    add_chain(
        &mut batch,
        &table,
        "postrouting",
        Hook {
            kind: ChainKind::Nat,
            point: Point::Postrouting,
            priority: SOURCE_NAT,
        },
        versions
            .iter()
            .map(|version| outgoing(*version, bridge, &masquerade.from)),
    );

    batch
}

/// Priorities of chains, as in the kernel's headers.
const RAW: i32 = -300;
const SOURCE_NAT: i32 = 100;

fn spoofed(version: Version, bridge: &str) -> Rule {
    Rule::new([
        Statement::Interface(Direction::In, Test::Is, bridge.to_owned()),
        Statement::Version(version),
        Statement::InSet(
            vec![Field::Source(version)],
            Test::IsNot,
            own_set(version).to_owned(),
        ),
        Statement::Verdict(Verdict::Drop),
    ])
}

fn outgoing(version: Version, bridge: &str, from: &[IpNet]) -> Rule {
    Rule::new([
        Statement::Ranges(
            Field::Source(version),
            Test::Is,
            of(version, from).collect(),
        ),
        Statement::InSet(
            vec![Field::Destination(version)],
            Test::IsNot,
            inside_set(version).to_owned(),
        ),
        Statement::Interface(Direction::Out, Test::IsNot, bridge.to_owned()),
        Statement::Masquerade { random_port: false },
    ])
}

fn add_chain(
    batch: &mut Batch,
    table: &Table,
    name: &str,
    hook: Hook,
    rules: impl Iterator<Item = Rule>,
) {
    let add = Command::AddChain {
        name: name.to_owned(),
        hook: Some(hook),
    };
    batch.push(table, add);
    for rule in rules {
        let chain = name.to_owned();
        batch.push(table, Command::AddRule { chain, rule });
    }
}

fn add_set(
    batch: &mut Batch,
    table: &Table,
    name: &str,
    version: Version,
    ranges: impl Iterator<Item = IpNet>,
) {
    let set = name.to_owned();
    let add = Set {
        name: set.clone(),
        key: vec![Type::Address(version)],
        kind: SetKind::Ranges,
    };
    batch.push(table, Command::AddSet(add));

    let elements = IpNet::aggregate(&ranges.collect())
        .into_iter()
        .map(|range| Element {
            key: vec![Value::Range(range)],
            data: None,
        })
        .collect();
    batch.push(table, Command::AddElements { set, elements });
}

fn of(version: Version, ranges: &[IpNet]) -> impl Iterator<Item = IpNet> + '_ {
    ranges
        .iter()
        .copied()
        .filter(move |range| Version::of(range.addr()) == version)
}

fn own_set(version: Version) -> &'static str {
    match version {
        Version::V4 => "own4",
        Version::V6 => "own6",
    }
}

fn inside_set(version: Version) -> &'static str {
    match version {
        Version::V4 => "inside4",
        Version::V6 => "inside6",
    }
}

fn net(text: &str) -> IpNet {
    text.parse().expect("it is a valid range")
}

/// What a pod may send from on its link: in IPv6 it finds its neighbours that way.
fn always_own(version: Version) -> Option<IpNet> {
    (version == Version::V6).then(|| net("fe80::/10"))
}

fn multicast(version: Version) -> IpNet {
    match version {
        Version::V4 => net("224.0.0.0/4"),
        Version::V6 => net("ff00::/8"),
    }
}
