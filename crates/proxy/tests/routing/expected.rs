//! The expected outcome for a packet, derived from the Services directly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use coracle_proxy::facts::{Endpoint, Node, Service, ServicePort, Slice};
use ipnet::IpNet;

use super::{NODE, Outcome, Packet, SERVICES, Sender};

/// How a Service is reached.
#[derive(Clone, Copy, PartialEq)]
enum By {
    ClusterIp,
    Outside,
}

pub(crate) fn outcome(
    services: &[Service],
    slices: &[Slice],
    node: &Node,
    packet: &Packet,
) -> Outcome {
    if is_excluded(services, packet) {
        return Outcome::Dropped;
    }

    let mut reached = Vec::new();
    for service in services {
        for port in &service.ports {
            if let Some(by) = reached_by(service, port, packet) {
                reached.push((service, port, by));
            }
        }
    }

    // Of several with the same external IP the first with endpoints wins, or else the first
    // rejects.
    let cases: Vec<Case> = reached
        .iter()
        .map(|(service, port, by)| case(service, port, *by, slices, node))
        .collect();

    if let Some(case) = cases.iter().find(|case| case.leads()) {
        return match case.outcome(packet) {
            Some(outcome) => outcome,
            None => cases
                .iter()
                .find_map(Case::refusal)
                .unwrap_or(Outcome::Untouched),
        };
    }

    if let Some(refusal) = cases.iter().find_map(Case::refusal) {
        return refusal;
    }

    let range: IpNet = SERVICES.parse().unwrap();
    match packet.to.ip() {
        ip if services
            .iter()
            .any(|service| service.cluster_ips.contains(&ip)) =>
        {
            Outcome::Rejected
        }
        ip if range.contains(&ip) => Outcome::Dropped,
        _ => Outcome::Untouched,
    }
}

/// Whether source ranges exclude a packet to a load balancer IP. Any Service with the IP may
/// restrict it.
fn is_excluded(services: &[Service], packet: &Packet) -> bool {
    let named = |service: &&Service| {
        service.load_balancer_ips.contains(&packet.to.ip())
            && service
                .ports
                .iter()
                .any(|port| (port.protocol, port.port) == (packet.protocol, packet.to.port()))
            && !service.source_ranges.is_empty()
            && service
                .source_ranges
                .iter()
                .all(|range| range.prefix_len() > 0)
    };
    let mut restrictions = services.iter().filter(named).peekable();

    let own: IpAddr = NODE.parse().unwrap();
    restrictions.peek().is_some()
        && !restrictions.any(|service| {
            let from = |ip: &IpAddr| service.source_ranges.iter().any(|range| range.contains(ip));
            from(&packet.from) || (from(&own) && packet.from == packet.to.ip())
        })
}

fn reached_by(service: &Service, port: &ServicePort, packet: &Packet) -> Option<By> {
    if port.protocol != packet.protocol {
        return None;
    }

    let (ip, number) = (packet.to.ip(), packet.to.port());
    let outside = service.external_ips.contains(&ip) || service.load_balancer_ips.contains(&ip);
    if number == port.port && service.cluster_ips.contains(&ip) {
        Some(By::ClusterIp)
    } else if (number == port.port && outside)
        || (ip.to_string() == NODE && port.node_port == Some(number))
    {
        Some(By::Outside)
    } else {
        None
    }
}

/// A Service as it is reached.
struct Case {
    by: By,
    external_local: bool,
    internal_local: bool,
    /// Ready endpoints allowed by hints, or else terminating ones that still serve.
    cluster: BTreeSet<SocketAddr>,
    local: BTreeSet<SocketAddr>,
    on_this_node: BTreeSet<SocketAddr>,
}

fn case(service: &Service, port: &ServicePort, by: By, slices: &[Slice], node: &Node) -> Case {
    let mut all: BTreeMap<SocketAddr, &Endpoint> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice.service == *service.key) {
        for target in slice.ports.iter().filter(|target| target.name == port.name) {
            for endpoint in &slice.endpoints {
                let address = SocketAddr::new(endpoint.address, target.port);
                if endpoint.terminating && all.contains_key(&address) {
                    continue;
                }
                all.insert(address, endpoint);
            }
        }
    }

    let of = |wanted: &dyn Fn(&Endpoint) -> bool| -> BTreeSet<SocketAddr> {
        all.iter()
            .filter(|(_, endpoint)| wanted(endpoint))
            .map(|(address, _)| *address)
            .collect()
    };

    let here = |endpoint: &Endpoint| endpoint.node == node.name;
    let ending = |endpoint: &Endpoint| endpoint.serving && endpoint.terminating;
    let ready = of(&|endpoint| endpoint.ready);
    let hinted = hinted(&all, &ready, node);
    let or_else = |first: BTreeSet<SocketAddr>, second: BTreeSet<SocketAddr>| {
        if first.is_empty() { second } else { first }
    };

    Case {
        by,
        external_local: service.external_local,
        internal_local: service.internal_local,
        cluster: or_else(hinted, of(&ending)),
        local: or_else(
            of(&|endpoint| endpoint.ready && here(endpoint)),
            of(&|endpoint| ending(endpoint) && here(endpoint)),
        ),
        on_this_node: of(&here),
    }
}

/// The ready endpoints that hints allow.
fn hinted(
    all: &BTreeMap<SocketAddr, &Endpoint>,
    ready: &BTreeSet<SocketAddr>,
    node: &Node,
) -> BTreeSet<SocketAddr> {
    let by_node: BTreeSet<SocketAddr> = ready
        .iter()
        .filter(|address| all[address].for_nodes.contains(&node.name))
        .copied()
        .collect();

    if ready
        .iter()
        .all(|address| !all[address].for_nodes.is_empty())
        && !by_node.is_empty()
    {
        return by_node;
    }

    let by_zone: BTreeSet<SocketAddr> = ready
        .iter()
        .filter(|address| all[address].for_zones.contains(&node.zone))
        .copied()
        .collect();

    if ready
        .iter()
        .all(|address| !all[address].for_zones.is_empty())
        && !by_zone.is_empty()
    {
        return by_zone;
    }

    ready.clone()
}

impl Case {
    fn pool_is_local(&self) -> bool {
        match self.by {
            By::ClusterIp => self.internal_local,
            By::Outside => self.external_local,
        }
    }

    /// Whether it has usable endpoints.
    fn leads(&self) -> bool {
        match self.by {
            By::ClusterIp if self.internal_local => !self.local.is_empty(),
            _ => !self.cluster.is_empty(),
        }
    }

    fn refusal(&self) -> Option<Outcome> {
        let pool = if self.pool_is_local() {
            &self.local
        } else {
            &self.cluster
        };
        let anywhere = !self.cluster.is_empty() || !self.local.is_empty();
        pool.is_empty().then_some(if anywhere {
            Outcome::Dropped
        } else {
            Outcome::Rejected
        })
    }

    fn outcome(&self, packet: &Packet) -> Option<Outcome> {
        let (any_of, hidden) = match (self.by, packet.sender) {
            (By::ClusterIp, sender) => (
                if self.internal_local {
                    &self.local
                } else {
                    &self.cluster
                },
                sender != Sender::Pod,
            ),
            (By::Outside, _) if !self.external_local => (&self.cluster, true),
            (By::Outside, Sender::Pod) => (&self.cluster, false),
            (By::Outside, Sender::Node) => (&self.cluster, true),
            (By::Outside, Sender::External) => (&self.local, false),
        };

        if any_of.is_empty() {
            return None;
        }

        let itself = |backend: &SocketAddr| {
            backend.ip() == packet.from && self.on_this_node.contains(backend)
        };
        let masqueraded = any_of
            .iter()
            .filter(|backend| hidden || itself(backend))
            .copied()
            .collect();

        Some(Outcome::To {
            any_of: any_of.clone(),
            masqueraded,
        })
    }
}
