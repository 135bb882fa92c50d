//! Removes stale UDP conntrack entries.
//!
//! The destination of a connection is chosen once and stored in conntrack. TCP clients notice a
//! lost endpoint; a client that keeps sending UDP from one port keeps the entry alive, and its
//! packets are lost. So whenever a UDP Service has changed, its conntrack entries are compared with
//! the serving endpoints, and stale ones are deleted. Entries of a Service without endpoints are
//! kept.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use coracle_netlink::NetlinkError;
use coracle_netlink::conntrack::{Conntrack, Flow};

use crate::compile::{address, outside};
use crate::endpoints::gather;
use crate::facts::{Service, Slice};
use crate::rules::{Family, Frontend, Protocol};

/// A UDP port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpPort {
    /// Its frontends.
    pub frontends: Vec<Frontend>,
    /// The serving endpoints, regardless of traffic policies.
    pub serving: BTreeSet<SocketAddr>,
}

/// The UDP ports of a Service that has endpoints.
pub(crate) fn udp_ports(service: &Service, slices: &[&Slice]) -> Vec<UdpPort> {
    let mut found = Vec::new();
    for port in service
        .ports
        .iter()
        .filter(|port| port.protocol == Protocol::Udp)
    {
        for cluster_ip in &service.cluster_ips {
            let family = Family::of(*cluster_ip);
            let endpoints = gather(slices.iter().copied(), port, family);
            let serving = endpoints.iter().filter(|(_, endpoint)| endpoint.serving);

            let serving: BTreeSet<SocketAddr> = serving.map(|(address, _)| *address).collect();
            if !serving.is_empty() {
                let mut frontends = outside(service, port, family);
                frontends.push(address(*cluster_ip, port));
                found.push(UdpPort { frontends, serving });
            }
        }
    }

    found
}

/// Deletes stale entries; returns how many.
pub fn delete_stale(ports: &[UdpPort]) -> Result<usize, NetlinkError> {
    let mut expected: BTreeMap<Frontend, &BTreeSet<SocketAddr>> = BTreeMap::new();
    for udp_port in ports {
        expected.extend(
            udp_port
                .frontends
                .iter()
                .map(|frontend| (*frontend, &udp_port.serving)),
        );
    }

    let families: BTreeSet<Family> = expected.keys().map(Frontend::family).collect();
    let mut deleted = 0;
    for family in families {
        let mut conntrack = Conntrack::open()?;
        for flow in conntrack.flows(family)? {
            if is_stale(&flow, &expected) {
                conntrack.delete(family, &flow)?;
                deleted += 1;
            }
        }
    }

    Ok(deleted)
}

fn is_stale(flow: &Flow, expected: &BTreeMap<Frontend, &BTreeSet<SocketAddr>>) -> bool {
    let (ip, port) = (flow.sent_to.ip(), flow.sent_to.port());
    let at_address = Frontend::Address {
        ip,
        protocol: Protocol::Udp,
        port,
    };

    let at_node = Frontend::NodePort {
        family: Family::of(ip),
        protocol: Protocol::Udp,
        port,
    };
    let serving = expected.get(&at_address).or_else(|| expected.get(&at_node));

    serving.is_some_and(|serving| !serving.contains(&flow.answered_by))
}
