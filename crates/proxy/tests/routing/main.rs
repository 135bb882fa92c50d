//! Compares the interpreted rules with the outcome that the Services specify, for random Services
//! and packets.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod expected;
mod interpret;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use coracle_client::ObjectKey;
use coracle_proxy::compile::{NodePortAddresses, compile, node_rules};
use coracle_proxy::facts::{Endpoint, Node, Service, ServicePort, Slice, SlicePort};
use coracle_proxy::rules::{Protocol, RuleSet};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// The sender of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sender {
    Pod,
    Node,
    External,
}

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) sender: Sender,
    pub(crate) from: IpAddr,
    pub(crate) to: SocketAddr,
    pub(crate) protocol: Protocol,
}

/// What happens to a packet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It goes to one of these, of which some see it masqueraded.
    To {
        any_of: BTreeSet<SocketAddr>,
        masqueraded: BTreeSet<SocketAddr>,
    },
    Rejected,
    Dropped,
    /// It is not for a Service.
    Untouched,
}

pub(crate) const PODS: &str = "10.70.0.0/16";
pub(crate) const SERVICES: &str = "10.96.0.0/12";
pub(crate) const NODE: &str = "192.0.2.1";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn rules_implement_the_services(
        services in vec(service(), 0..4),
        slices in vec(slice(), 0..6),
        packets in vec(packet(), 12),
        zone in select(vec!["a", "b", ""]),
    ) {
        let node = Node {
            name: "here".into(),
            zone: zone.into(),
            addresses: vec![NODE.parse().unwrap()],
            ..Node::default()
        };

        let services = named(services);
        let slices: Vec<Slice> = slices
            .into_iter()
            .enumerate()
            .map(|(number, slice)| Slice { key: ObjectKey::new("shop", &format!("slice{number}")), ..slice })
            .collect();
        let mut rules: RuleSet = compile(&services, &slices, &node);
        let (pods, ranges) = ([PODS.parse().unwrap()], [SERVICES.parse().unwrap()]);
        rules.extend(node_rules(&NodePortAddresses::Primary, &pods, &ranges, &node));

        for packet in packets {
            let found = interpret::outcome(&rules, &packet);
            let right = expected::outcome(&services, &slices, &node, &packet);
            prop_assert_eq!(found, right, "{:?}", packet);
        }
    }
}

fn named(services: Vec<Service>) -> Vec<Service> {
    let name = |(number, service): (usize, Service)| {
        let key = Arc::new(ObjectKey::new("shop", &format!("service{number}")));

        // The API server assigns unique cluster IPs and NodePorts; external IPs may conflict.
        let address = format!("10.96.0.{}", number + 1).parse().unwrap();
        let own = u16::try_from(number).unwrap() * 10;
        let ports = service.ports.into_iter().map(|port| ServicePort {
            node_port: port.node_port.map(|port| port + own),
            ..port
        });

        Service {
            key,
            cluster_ips: vec![address],
            ports: ports.collect(),
            ..service
        }
    };

    services.into_iter().enumerate().map(name).collect()
}

fn service() -> impl Strategy<Value = Service> {
    let outside = vec!["198.51.100.1", "198.51.100.2"];
    let ranges = vec![
        "10.70.0.0/16",
        "192.0.2.0/24",
        "203.0.113.0/24",
        "203.0.113.0/25",
        "0.0.0.0/0",
    ];

    (
        subsequence(
            vec![
                (80, Protocol::Tcp),
                (81, Protocol::Tcp),
                (80, Protocol::Udp),
            ],
            1..=2,
        ),
        any::<bool>(),
        subsequence(outside.clone(), 0..=1),
        subsequence(outside, 0..=1),
        subsequence(ranges, 0..=2),
        select(vec![None, Some(60)]),
        any::<(bool, bool)>(),
    )
        .prop_map(
            |(
                ports,
                node_ports,
                external,
                balancers,
                ranges,
                affinity,
                (external_local, internal_local),
            )| {
                let ports = ports.into_iter().map(|(port, protocol)| ServicePort {
                    name: format!("{protocol}-{port}").into(),
                    protocol,
                    port,
                    node_port: node_ports.then_some(30_000 + port),
                });

                let reached = node_ports || !external.is_empty() || !balancers.is_empty();
                Service {
                    key: Arc::default(),
                    cluster_ips: vec![],
                    ports: ports.collect(),
                    external_ips: external.iter().map(|ip| ip.parse().unwrap()).collect(),
                    load_balancer_ips: balancers.iter().map(|ip| ip.parse().unwrap()).collect(),
                    source_ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
                    affinity,
                    external_local: external_local && reached,
                    internal_local,
                    health_check_port: None,
                }
            },
        )
}

fn slice() -> impl Strategy<Value = Slice> {
    (
        0..4_usize,
        vec(endpoint(), 0..4),
        subsequence(
            vec![
                (80, Protocol::Tcp),
                (81, Protocol::Tcp),
                (80, Protocol::Udp),
            ],
            0..=3,
        ),
    )
        .prop_map(|(service, endpoints, ports)| Slice {
            key: ObjectKey::default(),
            service: ObjectKey::new("shop", &format!("service{service}")),
            ports: ports
                .into_iter()
                .map(|(port, protocol)| SlicePort {
                    name: format!("{protocol}-{port}").into(),
                    protocol,
                    port: 8000 + port,
                })
                .collect(),
            endpoints,
        })
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let pods = vec![(1, "here"), (2, "here"), (3, "here"), (4, "there"), (5, "")];
    (select(pods), any::<(bool, bool, bool)>(), zones(), zones()).prop_map(
        |((number, node), (ready, serving, terminating), for_zones, for_nodes)| Endpoint {
            address: IpAddr::from([10, 70, 0, number]),
            node: node.into(),
            ready,
            serving,
            terminating,
            for_zones: for_zones.iter().map(|zone| (*zone).into()).collect(),
            for_nodes: for_nodes
                .iter()
                .map(|zone| {
                    if *zone == "a" {
                        "here".into()
                    } else {
                        "there".into()
                    }
                })
                .collect(),
        },
    )
}

/// Most endpoints have a hint, so that sometimes all do.
fn zones() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![3 => subsequence(vec!["a", "b"], 1..=2), 1 => Just(vec![])]
}

fn packet() -> impl Strategy<Value = Packet> {
    let senders = vec![
        (Sender::Pod, "10.70.0.1"),
        (Sender::Pod, "10.70.0.2"),
        (Sender::Node, NODE),
        (Sender::External, "192.0.2.9"),
        (Sender::External, "203.0.113.200"),
        (Sender::External, "203.0.113.5"),
    ];

    let targets = vec![
        "10.96.0.1",
        "10.96.0.2",
        "10.96.0.3",
        "10.96.0.4",
        "10.96.9.9",
        "198.51.100.1",
        "198.51.100.2",
        NODE,
        "10.70.0.1",
    ];

    let ports = vec![80, 81, 30_080, 30_081, 30_090, 30_100, 30_110];
    (
        select(senders),
        select(targets),
        select(ports),
        select(vec![Protocol::Tcp, Protocol::Udp]),
    )
        .prop_map(|((sender, from), to, port, protocol)| Packet {
            sender,
            from: from.parse().unwrap(),
            to: SocketAddr::new(to.parse().unwrap(), port),
            protocol,
        })
}
