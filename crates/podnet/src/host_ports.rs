//! Host ports, as one nftables table.
//!
//! [`compile`] renders the whole table; [`apply`] replaces it with `nft` in one transaction. There
//! are no incremental changes, so remains of a crash disappear with the next change. Connections
//! from pods and from the host's loopback are masqueraded with the bridge's address: otherwise
//! replies would take another path.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::process::{Command, Stdio};

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

/// Why the table was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("cannot run `nft`: host ports need it; install the package `nftables`")]
    Run(#[source] io::Error),
    #[error("`nft` rejected the host port table: {0}")]
    Refused(String),
}

/// Renders the table for `nft`. A table without rules is only deleted.
pub(crate) fn compile(input: &PortTable<'_>) -> String {
    let table = input.table;

    // Added first, so that the deletion does not fail if it does not exist.
    let mut text = format!("add table inet {table}\ndelete table inet {table}\n");
    let ports = input.pods.iter().flat_map(|(addresses, ports)| {
        addresses
            .iter()
            .flat_map(move |address| ports.iter().map(move |port| (*address, port)))
    });

    let rules: String = ports
        .filter_map(|(address, port)| rule(address, port))
        .collect();
    if rules.is_empty() && input.masquerade_outside.is_empty() {
        return text;
    }

    let bridge = input.bridge;
    let (near4, near6) = (near(input.ranges, true), near(input.ranges, false));
    let masquerade: String = input
        .ranges
        .iter()
        .filter_map(|range| masquerade(input, *range))
        .collect();

    write!(
        text,
        "table inet {table} {{
\tset near4 {{
\t\ttype ipv4_addr
\t\tflags interval
\t\telements = {{ {near4} }}
\t}}
\tset near6 {{
\t\ttype ipv6_addr
\t\tflags interval
\t\telements = {{ {near6} }}
\t}}
\tchain guard {{
\t\ttype filter hook prerouting priority -300; policy accept;
\t\tiifname \"{bridge}\" ip daddr 127.0.0.0/8 drop
\t}}
\tchain ports {{
{rules}\t}}
\tchain prerouting {{
\t\ttype nat hook prerouting priority -100; policy accept;
\t\tfib daddr type local jump ports
\t}}
\tchain output {{
\t\ttype nat hook output priority -100; policy accept;
\t\tfib daddr type local jump ports
\t}}
\tchain postrouting {{
\t\ttype nat hook postrouting priority 100; policy accept;
\t\tct status dnat meta mark and {MASQUERADE_MARK} == {MASQUERADE_MARK} masquerade
{masquerade}\t}}
}}
"
    )
    .expect("writing to a string works");

    text
}

/// Mark bit for connections to masquerade. Upstream's portmap plugin uses the same.
const MASQUERADE_MARK: &str = "0x2000";

/// The rules of one port and address; none if the host IP is of the other family.
fn rule(address: IpAddr, port: &PortMapping) -> Option<String> {
    if port
        .host_ip
        .is_some_and(|host| host.is_ipv4() != address.is_ipv4())
    {
        return None;
    }

    let (family, near) = if address.is_ipv4() {
        ("ip", "near4")
    } else {
        ("ip6", "near6")
    };

    let at = match port.host_ip.filter(|host| !host.is_unspecified()) {
        Some(host) => format!("{family} daddr {host} "),
        None => format!(
            "meta nfproto {} ",
            if address.is_ipv4() { "ipv4" } else { "ipv6" }
        ),
    };

    let protocol = port.protocol.name();
    let (host_port, target) = (
        port.host_port,
        std::net::SocketAddr::new(address, port.container_port),
    );

    Some(format!(
        "\t\t{at}{family} saddr @{near} {protocol} dport {host_port} meta mark set meta mark or {MASQUERADE_MARK}\n\
         \t\t{at}{protocol} dport {host_port} dnat {family} to {target}\n"
    ))
}

/// Sources whose connections must be masqueraded: pods of this node and the host's loopback.
fn near(ranges: &[IpNet], is_v4: bool) -> String {
    let loopback = if is_v4 { "127.0.0.0/8" } else { "::1/128" };
    let ranges = ranges
        .iter()
        .filter(|range| range.addr().is_ipv4() == is_v4);
    ranges
        .map(IpNet::to_string)
        .chain([loopback.to_owned()])
        .collect::<Vec<_>>()
        .join(", ")
}

fn masquerade(input: &PortTable<'_>, range: IpNet) -> Option<String> {
    let same_family = |other: &&IpNet| other.addr().is_ipv4() == range.addr().is_ipv4();
    let inside: Vec<String> = input
        .masquerade_outside
        .iter()
        .filter(same_family)
        .map(IpNet::to_string)
        .collect();

    let family = if range.addr().is_ipv4() { "ip" } else { "ip6" };
    let (inside, bridge) = (
        Some(inside.join(", ")).filter(|inside| !inside.is_empty())?,
        input.bridge,
    );

    Some(format!(
        "\t\t{family} saddr {range} {family} daddr != {{ {inside} }} oifname != \"{bridge}\" masquerade\n"
    ))
}

/// Deletes a table, if it exists. A kernel without nftables has none.
pub(crate) fn remove(table: &str) -> Result<(), FilterError> {
    let listed = match run(&["list", "tables", "inet"], "") {
        Err(FilterError::Refused(said)) if is_unsupported(&said) => return Ok(()),
        listed => listed?,
    };
    let own = format!("table inet {table}");
    if !listed.lines().any(|line| line.trim() == own) {
        return Ok(());
    }
    apply(&format!("delete {own}\n"))
}

/// Whether the kernel lacks the feature.
fn is_unsupported(said: &str) -> bool {
    [
        "Protocol not supported",
        "Operation not supported",
        "Address family not supported",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// Applies a script atomically.
pub(crate) fn apply(script: &str) -> Result<(), FilterError> {
    run(&["-f", "-"], script).map(drop)
}

/// Runs `nft`; the answer is what it prints.
fn run(arguments: &[&str], script: &str) -> Result<String, FilterError> {
    let mut nft = Command::new("nft")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(FilterError::Run)?;

    let sent = nft
        .stdin
        .take()
        .expect("stdin was piped")
        .write_all(script.as_bytes());

    let output = nft.wait_with_output().map_err(FilterError::Run)?;
    if !output.status.success() {
        return Err(FilterError::Refused(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }

    sent.map_err(FilterError::Run)?;

    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Protocol {
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
mod tests {
    use super::*;

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
            let text = compile(&input);
            text.lines()
                .filter(|line| line.contains("dnat i"))
                .map(|line| line.trim().to_owned())
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
            &["ip daddr 192.0.2.1 tcp dport 8080 dnat ip to 10.0.0.2:80"],
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
        assert_eq!(compile(&input), "add table inet t\ndelete table inet t\n");
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
