//! Which way leads to which node.

use std::collections::BTreeSet;

use coracle_netlink::Version;
use proptest::prelude::*;

use super::{INTERFACE, ip, machine, net, node};
use crate::node::Node;
use crate::plan::{Encapsulation, Machine, Plan, Way, plan};
use Encapsulation::{Always, CrossSubnet, Never};

fn own() -> Node {
    node(
        "a",
        &["10.244.0.0/24", "fd00:0:0:1::/64"],
        &["192.0.2.1", "2001:db8:2::1"],
    )
}

fn planned(others: &[Node], mode: Encapsulation) -> Plan {
    plan(&own(), others, &machine(others), mode, &[])
}

/// `10.244.1.0/24 direct 192.0.2.2`, `10.244.1.0/24 over 4 10.244.1.0 to 198.51.100.2`.
fn show(plan: &Plan) -> Vec<String> {
    let show = |(range, way): (_, &Way)| match way {
        Way::Direct { gateway, interface } => {
            assert_eq!(*interface, INTERFACE);
            format!("{range} direct {gateway}")
        }
        Way::Encapsulated { version, gateway } => {
            let device = &plan.devices[version];
            let mac = device.neighbours[gateway];
            let target = device.tunnels[&mac].address;
            let version = if *version == Version::V4 { 4 } else { 6 };
            format!("{range} over {version} to {target}")
        }
    };
    plan.routes.iter().map(show).collect()
}

#[test]
fn a_node_of_the_segment_gets_a_route_and_another_a_tunnel() {
    let check = |addresses: &[&str], mode, expected: &[&str]| {
        let other = node("b", &["10.244.1.0/24", "fd00:0:0:2::/64"], addresses);
        assert_eq!(
            show(&planned(&[other], mode)),
            expected,
            "{addresses:?} {mode:?}"
        );
    };

    let near = ["192.0.2.2", "2001:db8:2::2"];
    let direct = [
        "10.244.1.0/24 direct 192.0.2.2",
        "fd00:0:0:2::/64 direct 2001:db8:2::2",
    ];
    check(&near, CrossSubnet, &direct);
    check(&near, Never, &direct);
    let tunnels = [
        "10.244.1.0/24 over 4 to 192.0.2.2",
        "fd00:0:0:2::/64 over 4 to 192.0.2.2",
    ];
    check(&near, Always, &tunnels);

    let far = ["198.51.100.2", "2001:db8:3::2"];
    let tunnels = [
        "10.244.1.0/24 over 4 to 198.51.100.2",
        "fd00:0:0:2::/64 over 4 to 198.51.100.2",
    ];
    check(&far, CrossSubnet, &tunnels);
    check(&far, Always, &tunnels);
    check(&far, Never, &[]);

    // A version whose addresses the node lacks goes through packets of the other.
    let mixed = [
        "10.244.1.0/24 direct 192.0.2.2",
        "fd00:0:0:2::/64 over 4 to 192.0.2.2",
    ];
    check(&["192.0.2.2"], CrossSubnet, &mixed);
    let mixed = [
        "10.244.1.0/24 over 6 to 2001:db8:3::2",
        "fd00:0:0:2::/64 over 6 to 2001:db8:3::2",
    ];
    check(&["2001:db8:3::2"], CrossSubnet, &mixed);
    check(&[], CrossSubnet, &[]);
}

#[test]
fn pods_get_the_mtu_that_fits_through_the_tunnels_in_use() {
    let check = |address: &str, mode, pods: u32| {
        let other = node("b", &["10.244.1.0/24"], &[address]);
        let plan = planned(&[other], mode);
        assert_eq!(plan.pod_mtu, pods, "{address} {mode:?}");
        for device in plan.devices.values() {
            assert_eq!(device.mtu, pods);
        }
    };

    check("192.0.2.2", CrossSubnet, 1500);
    check("192.0.2.2", Always, 1450);
    check("198.51.100.2", CrossSubnet, 1450);
    check("2001:db8:3::2", CrossSubnet, 1430);
    check("198.51.100.2", Never, 1500);
    let narrow = node("b", &["10.244.1.0/24"], &["192.0.2.2"]);
    let mut seen = machine(std::slice::from_ref(&narrow));
    seen.uplink_mtu = 9000;
    assert_eq!(
        plan(&own(), &[narrow], &seen, CrossSubnet, &[]).pod_mtu,
        1500
    );
    assert_eq!(planned(&[], CrossSubnet).pod_mtu, 1500);
    assert_eq!(planned(&[], Always).pod_mtu, 1450);
}

#[test]
fn traffic_to_pods_and_to_nodes_of_the_segment_keeps_its_source() {
    let others = [
        node("b", &["10.244.1.0/24"], &["192.0.2.2"]),
        node("c", &["10.244.2.0/24"], &["198.51.100.2"]),
    ];
    let machine = Machine {
        bridge: vec![net("10.9.0.1/24")],
        ..machine(&others)
    };
    let check = |mode, target: &str, kept: bool| {
        let found = plan(&own(), &others, &machine, mode, &[net("10.250.0.0/16")]).masquerade;
        assert_eq!(
            found.from,
            [
                net("10.9.0.0/24"),
                net("10.244.0.0/24"),
                net("fd00:0:0:1::/64")
            ]
        );
        let inside = found.inside.iter().any(|range| range.contains(&ip(target)));
        assert_eq!(inside, kept, "{mode:?} {target}");
    };

    for mode in [Never, CrossSubnet, Always] {
        check(mode, "10.244.1.9", true);
        check(mode, "10.244.2.9", true);
        check(mode, "10.250.7.9", true);
        check(mode, "192.0.2.1", true);
        check(mode, "198.51.100.2", false);
        check(mode, "192.0.2.9", false);
        check(mode, "203.0.113.1", false);
    }
    check(CrossSubnet, "192.0.2.2", true);
    check(Always, "192.0.2.2", false);
}

#[test]
fn ranges_and_addresses_that_lead_nowhere_are_reported_and_left_out() {
    let check = |other: Node, expected: &[&str]| {
        let plan = planned(std::slice::from_ref(&other), CrossSubnet);
        let problems: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, expected, "{other:?}");
        assert!(plan.routes.is_empty() && plan.devices.is_empty());
    };

    check(
        node("b", &["10.244.0.128/25"], &["192.0.2.2"]),
        &["node b: its pod range 10.244.0.128/25 overlaps that of node a"],
    );
    check(
        node("b", &["10.244.1.0/24"], &["10.244.1.1"]),
        &["node b: no route to its internal addresses; pods in 10.244.1.0/24 cannot be reached"],
    );
    check(node("b", &[], &["192.0.2.2"]), &[]);

    let far = node("b", &["10.244.1.0/24"], &["198.51.100.2"]);
    assert_eq!(
        planned(&[far], Never).problems[0].to_string(),
        "node b is on another segment and --encapsulation is never; pods in 10.244.1.0/24 cannot be reached"
    );
}

#[test]
fn a_node_without_a_range_reaches_those_of_its_segment() {
    let others = [
        node("b", &["10.244.1.0/24"], &["192.0.2.2"]),
        node("c", &["10.244.2.0/24"], &["198.51.100.2"]),
    ];
    let own = node("a", &[], &["192.0.2.1"]);
    let plan = plan(&own, &others, &machine(&others), CrossSubnet, &[]);
    assert_eq!(show(&plan), ["10.244.1.0/24 direct 192.0.2.2"]);
    assert!(plan.devices.is_empty() && plan.masquerade.from.is_empty());
}

/// A node of some segment, with ranges of its own.
fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let one = (0_u8..4, any::<bool>(), any::<bool>());
    prop::collection::vec(one, 2..12).prop_map(|all| {
        let made = all
            .iter()
            .zip(0_u8..)
            .map(|((segment, four, six), number)| {
                let (segment, four) = (*segment, *four || !*six);
                let addresses = [
                    four.then(|| format!("192.0.{}.{}", 2 + segment, number + 1)),
                    six.then(|| format!("2001:db8:{:x}::{:x}", 2 + segment, number + 1)),
                ];
                let addresses: Vec<String> = addresses.into_iter().flatten().collect();
                let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
                node(
                    &format!("node-{number}"),
                    &[
                        &format!("10.244.{number}.0/24"),
                        &format!("fd00:0:0:{number:x}::/64"),
                    ],
                    &addresses,
                )
            });
        made.collect()
    })
}

/// What `own` sees: its segment is that of its own addresses.
fn seen_by(own: &Node, all: &[Node]) -> Machine {
    let mut machine = machine(all);
    for (address, path) in &mut machine.paths {
        let segment = |of: &std::net::IpAddr| match of {
            std::net::IpAddr::V4(of) => u16::from(of.octets()[2]),
            std::net::IpAddr::V6(of) => of.segments()[2],
        };
        let near = own
            .addresses
            .iter()
            .find(|near| near.is_ipv4() == address.is_ipv4());
        path.is_direct = near.is_some_and(|near| segment(near) == segment(address));
    }
    machine.paths.retain(|address, _| {
        own.addresses
            .iter()
            .any(|near| near.is_ipv4() == address.is_ipv4())
    });
    machine
}

proptest! {
    /// Every two nodes reach each other the same way, and what one sends into a tunnel the other
    /// receives: under its identifier, for its hardware address.
    #[test]
    fn two_nodes_agree(all in nodes(), always in any::<bool>()) {
        let mode = if always { Always } else { CrossSubnet };
        let plans: Vec<Plan> = all
            .iter()
            .map(|own| plan(own, &all, &seen_by(own, &all), mode, &[]))
            .collect();

        for (here, one) in all.iter().enumerate() {
            for (there, other) in all.iter().enumerate().filter(|(there, _)| *there != here) {
                for (to, back) in other.ranges.iter().zip(&one.ranges) {
                    match (plans[here].routes.get(to), plans[there].routes.get(back)) {
                        (Some(Way::Direct { gateway, .. }), Some(Way::Direct { .. })) => {
                            prop_assert!(!always && other.addresses.contains(gateway));
                        }
                        (
                            Some(Way::Encapsulated { version, gateway }),
                            Some(Way::Encapsulated { version: back, .. }),
                        ) => {
                            prop_assert_eq!(version, back);
                            let device = &plans[here].devices[version];
                            let receiver = &plans[there].devices[version];
                            let mac = device.neighbours[gateway];
                            prop_assert_eq!(mac, receiver.vxlan.mac);
                            let tunnel = device.tunnels[&mac];
                            prop_assert_eq!(tunnel.identifier, Some(receiver.vxlan.identifier));
                            prop_assert!(other.addresses.contains(&tunnel.address));
                            prop_assert!(plans[here].pod_mtu <= device.mtu);
                        }
                        // They share no version.
                        (None, None) => {
                            let has = |four: bool, node: &Node| {
                                node.addresses.iter().any(|one| one.is_ipv4() == four)
                            };
                            let share = |four| has(four, one) && has(four, other);
                            prop_assert!(!share(true) && !share(false));
                        }
                        ways => prop_assert!(false, "{:?}", ways),
                    }
                }
            }
        }
    }

    /// Each node has a hardware address and an identifier of its own.
    #[test]
    fn nodes_are_told_apart(all in nodes()) {
        let far: Vec<Plan> = all
            .iter()
            .map(|own| plan(own, &all, &seen_by(own, &all), Always, &[]))
            .collect();
        let devices = far.iter().filter_map(|plan| plan.devices.values().next());
        let all: Vec<_> = devices.map(|device| device.vxlan).collect();
        let macs: BTreeSet<_> = all.iter().map(|vxlan| vxlan.mac).collect();
        let identifiers: BTreeSet<_> = all.iter().map(|vxlan| vxlan.identifier).collect();
        prop_assert_eq!((macs.len(), identifiers.len()), (all.len(), all.len()));
    }

    /// The order in which nodes are listed does not matter.
    #[test]
    fn the_order_of_nodes_does_not_matter(all in nodes(), seed in any::<prop::sample::Index>()) {
        let mut turned = all.clone();
        turned.rotate_left(seed.index(all.len()));
        let seen = seen_by(&all[0], &all);
        prop_assert_eq!(
            plan(&all[0], &all, &seen, CrossSubnet, &[]),
            plan(&all[0], &turned, &seen, CrossSubnet, &[])
        );
    }
}
