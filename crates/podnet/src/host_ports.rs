//! Host ports, as one nftables table.
//!
//! [`compile`] makes the whole table, which replaces the one before at once. There are no
//! incremental changes, so remains of a crash disappear with the next change. Connections from pods
//! and from the host's loopback are masqueraded with the bridge's address: otherwise replies would
//! take another path.

use std::net::IpAddr;

use coracle_netlink::Version;
use coracle_netlink::nftables::{
    Batch, ChainKind, Command, Direction, Element, End, Family, Field, Hook, Point, Rule, Set,
    SetKind, Statement, Table, Test, Type, Value, Verdict,
};
use ipnet::IpNet;

use crate::{PortMapping, Protocol};

/// The inputs of the table.
pub(crate) struct PortTable<'a> {
    pub(crate) table: &'a str,
    pub(crate) bridge: &'a str,
    /// Pod CIDRs.
    pub(crate) ranges: &'a [IpNet],
    /// Destinations that are not masqueraded; empty: no masquerading.
    pub(crate) masquerade_outside: &'a [IpNet],
    /// The addresses and port mappings of each pod.
    pub(crate) pods: Vec<(&'a [IpAddr], &'a [PortMapping])>,
}

/// Replaces the table. One without rules is only deleted.
pub(crate) fn compile(input: &PortTable<'_>) -> Batch {
    let mut batch = Batch::new();
    let table = table(input.table);
    batch.delete_table(&table);

    let ports = input.pods.iter().flat_map(|(addresses, ports)| {
        addresses
            .iter()
            .flat_map(move |address| ports.iter().map(move |port| (*address, port)))
    });
    let rules: Vec<Rule> = ports
        .filter_map(|(address, port)| rules(address, port))
        .flatten()
        .collect();
    if rules.is_empty() && input.masquerade_outside.is_empty() {
        return batch;
    }

    batch.push(&table, Command::AddTable);
    for version in Version::BOTH {
        near(&mut batch, &table, input.ranges, version);
    }
    chains(&mut batch, &table, input, rules);

    batch
}

pub(crate) fn table(name: &str) -> Table {
    Table {
        family: Family::Inet,
        name: name.to_owned(),
    }
}

fn chains(batch: &mut Batch, table: &Table, input: &PortTable<'_>, ports: Vec<Rule>) {
    let mut add = |name: &str, hook: Option<Hook>, rules: Vec<Rule>| {
        let chain = name.to_owned();
        let name = chain.clone();
        batch.push(table, Command::AddChain { name, hook });
        for rule in rules {
            let chain = chain.clone();
            batch.push(table, Command::AddRule { chain, rule });
        }
    };

    let loopback = Statement::Ranges(
        Field::Destination(Version::V4),
        Test::Is,
        vec![loopback(Version::V4)],
    );
    let guard = Rule::new([
        Statement::Interface(Direction::In, Test::Is, input.bridge.to_owned()),
        loopback,
        Statement::Verdict(Verdict::Drop),
    ]);
    let hook = |kind, point, priority| {
        Some(Hook {
            kind,
            point,
            priority,
        })
    };
    let raw = hook(ChainKind::Filter, Point::Prerouting, -300);
    add("guard", raw, vec![guard]);
    add("ports", None, ports);

    let to_ports = || {
        Rule::new([
            Statement::Local(End::Destination),
            Statement::Verdict(Verdict::Jump("ports".to_owned())),
        ])
    };
    let nat = |point, priority| hook(ChainKind::Nat, point, priority);
    add("prerouting", nat(Point::Prerouting, -100), vec![to_ports()]);
    add("output", nat(Point::Output, -100), vec![to_ports()]);

    let marked = Rule::new([
        Statement::Redirected,
        Statement::AllMarks(MASQUERADE_MARK),
        Statement::Masquerade { random_port: false },
    ]);
    let outgoing = input
        .ranges
        .iter()
        .filter_map(|range| masquerade(input, *range));
    let rules = [marked].into_iter().chain(outgoing).collect();
    add("postrouting", nat(Point::Postrouting, 100), rules);
}

/// Mark bit for connections to masquerade. Upstream's portmap plugin uses the same.
const MASQUERADE_MARK: u32 = 0x2000;

/// The rules of one port and address; none if the host IP is of the other family.
fn rules(address: IpAddr, port: &PortMapping) -> Option<[Rule; 2]> {
    if port
        .host_ip
        .is_some_and(|host| host.is_ipv4() != address.is_ipv4())
    {
        return None;
    }

    let version = Version::of(address);
    let at = match specific_address(port) {
        Some(host) => Statement::Ranges(
            Field::Destination(version),
            Test::Is,
            vec![IpNet::from(host)],
        ),
        None => Statement::Version(version),
    };

    let port_on_host = Statement::Port(port.protocol.of_nftables(), port.host_port);
    let target = std::net::SocketAddr::new(address, port.container_port);
    let from_near = vec![Field::Source(version)];

    Some([
        Rule::new([
            at.clone(),
            Statement::InSet(from_near, Test::Is, near_set(version).to_owned()),
            port_on_host.clone(),
            Statement::SetMark(MASQUERADE_MARK),
        ]),
        Rule::new([at, port_on_host, Statement::Redirect(target)]),
    ])
}

fn near_set(version: Version) -> &'static str {
    match version {
        Version::V4 => "near4",
        Version::V6 => "near6",
    }
}

/// Sources whose connections must be masqueraded: pods of this node and the host's loopback.
fn near(batch: &mut Batch, table: &Table, ranges: &[IpNet], version: Version) {
    let set = near_set(version).to_owned();
    let add = Set {
        name: set.clone(),
        key: vec![Type::Address(version)],
        kind: SetKind::Ranges,
    };
    batch.push(table, Command::AddSet(add));

    let elements = ranges
        .iter()
        .filter(|range| Version::of(range.addr()) == version)
        .copied()
        .chain([loopback(version)])
        .map(|range| Element {
            key: vec![Value::Range(range)],
            data: None,
        })
        .collect();
    batch.push(table, Command::AddElements { set, elements });
}

fn loopback(version: Version) -> IpNet {
    match version {
        Version::V4 => IpNet::V4(ipnet::Ipv4Net::new_assert([127, 0, 0, 0].into(), 8)),
        Version::V6 => IpNet::V6(std::net::Ipv6Addr::LOCALHOST.into()),
    }
}

fn masquerade(input: &PortTable<'_>, range: IpNet) -> Option<Rule> {
    let version = Version::of(range.addr());
    let inside: Vec<IpNet> = input
        .masquerade_outside
        .iter()
        .filter(|other| Version::of(other.addr()) == version)
        .copied()
        .collect();
    if inside.is_empty() {
        return None;
    }

    Some(Rule::new([
        Statement::Ranges(Field::Source(version), Test::Is, vec![range]),
        Statement::Ranges(Field::Destination(version), Test::IsNot, inside),
        Statement::Interface(Direction::Out, Test::IsNot, input.bridge.to_owned()),
        Statement::Masquerade { random_port: false },
    ]))
}

impl Protocol {
    fn of_nftables(self) -> coracle_netlink::nftables::Protocol {
        match self {
            Protocol::Tcp => coracle_netlink::nftables::Protocol::Tcp,
            Protocol::Udp => coracle_netlink::nftables::Protocol::Udp,
            Protocol::Sctp => coracle_netlink::nftables::Protocol::Sctp,
        }
    }

    /// Its lower-case name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        }
    }
}

/// Whether two port mappings conflict.
pub(crate) fn collide(one: &PortMapping, other: &PortMapping) -> bool {
    let same_host = match (specific_address(one), specific_address(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    one.protocol == other.protocol && one.host_port == other.host_port && same_host
}

fn specific_address(port: &PortMapping) -> Option<IpAddr> {
    port.host_ip.filter(|address| !address.is_unspecified())
}

#[cfg(test)]
#[path = "../../netlink/tests/namespaces/mod.rs"]
mod namespaces;

#[cfg(test)]
mod tests {
    use super::namespaces::Namespace;
    use super::*;

    #[test]
    fn the_kernel_gets_what_the_text_says() {
        let addresses: Vec<IpAddr> = vec!["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        let ports = [
            port(8080),
            PortMapping {
                protocol: Protocol::Udp,
                host_ip: Some("192.0.2.1".parse().unwrap()),
                ..port(53)
            },
            PortMapping {
                protocol: Protocol::Sctp,
                host_ip: Some("fd02::1".parse().unwrap()),
                ..port(9)
            },
        ];
        let outside = ["10.0.0.0/16", "10.96.0.0/12", "fd00::/48"].map(|net| net.parse().unwrap());

        for masquerade_outside in [&outside[..], &outside[1..], &[]] {
            let batch = compile(&PortTable {
                table: "t",
                bridge: "b",
                ranges: &["10.0.0.0/22".parse().unwrap(), "fd00::/64".parse().unwrap()],
                masquerade_outside,
                pods: vec![(&addresses, &ports)],
            });

            let (ours, theirs) = (Namespace::new(), Namespace::new());
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), batch.to_string()).unwrap();
            theirs.run("nft", &format!("-f {}", file.path().display()));
            ours.inside(|| {
                coracle_netlink::nftables::Nftables::open()
                    .unwrap()
                    .apply(&batch)
                    .unwrap();
                assert!(ours.path().exists());
            });
            let listed = |namespace: &Namespace| namespace.run("nft", "list ruleset");
            assert_eq!(listed(&ours), listed(&theirs));
            assert!(listed(&ours).contains("dnat ip6 to [fd00::2]:80"));
        }
    }

    #[test]
    fn a_port_is_mapped_to_the_address_of_its_family() {
        let addresses: Vec<IpAddr> = vec!["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        let rules = |host_ip: Option<&str>| {
            let port = PortMapping {
                host_ip: host_ip.map(|ip| ip.parse().unwrap()),
                ..port(8080)
            };

            let input = PortTable {
                table: "t",
                bridge: "b",
                ranges: &["10.0.0.0/24".parse().unwrap(), "fd00::/64".parse().unwrap()],
                masquerade_outside: &[],
                pods: vec![(&addresses, std::slice::from_ref(&port))],
            };
            let text = compile(&input).to_string();
            text.lines()
                .filter(|line| line.contains("dnat i"))
                .filter_map(|line| line.strip_prefix("add rule inet t ports "))
                .map(str::to_owned)
                .collect()
        };

        let check = |host_ip: Option<&str>, expected: &[&str]| {
            let found: Vec<String> = rules(host_ip);
            assert_eq!(found, expected, "{host_ip:?}");
        };

        let four = "meta nfproto ipv4 tcp dport 8080 dnat ip to 10.0.0.2:80";
        let six = "meta nfproto ipv6 tcp dport 8080 dnat ip6 to [fd00::2]:80";
        check(None, &[four, six]);
        check(Some("0.0.0.0"), &[four]);
        check(Some("::"), &[six]);
        check(
            Some("192.0.2.1"),
            &["ip daddr 192.0.2.1/32 tcp dport 8080 dnat ip to 10.0.0.2:80"],
        );
    }

    #[test]
    fn a_table_without_ports_is_deleted() {
        let input = PortTable {
            table: "t",
            bridge: "b",
            ranges: &[],
            masquerade_outside: &[],
            pods: vec![],
        };
        assert_eq!(
            compile(&input).to_string(),
            "add table inet t\ndelete table inet t\n"
        );
    }

    #[test]
    fn ports_collide_on_the_same_address_or_on_all() {
        let check = |one: Option<&str>, other: Option<&str>, expected: bool| {
            let at = |ip: Option<&str>| PortMapping {
                host_ip: ip.map(|ip| ip.parse().unwrap()),
                ..port(1)
            };
            assert_eq!(collide(&at(one), &at(other)), expected, "{one:?} {other:?}");
        };

        check(None, None, true);
        check(None, Some("192.0.2.1"), true);
        check(Some("0.0.0.0"), Some("192.0.2.1"), true);
        check(Some("192.0.2.2"), Some("192.0.2.1"), false);

        assert!(!collide(&port(1), &port(2)));
        assert!(!collide(
            &port(1),
            &PortMapping {
                protocol: Protocol::Udp,
                ..port(1)
            }
        ));
    }

    fn port(host_port: u16) -> PortMapping {
        PortMapping {
            protocol: Protocol::Tcp,
            container_port: 80,
            host_port,
            host_ip: None,
        }
    }
}
