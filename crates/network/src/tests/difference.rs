//! What changes from one plan to the next, on a model of the kernel.

use std::collections::{BTreeMap, BTreeSet};

use coracle_netlink::Version;
use coracle_netlink::route::{FoundRoute, Link, Neighbour};
use ipnet::IpNet;
use proptest::prelude::*;

use super::{machine, node};
use crate::difference::{DeviceStep, Step, difference};
use crate::node::Node;
use crate::observe::{Found, FoundDevice, PROTOCOL};
use crate::plan::{Encapsulation, Plan, Way, plan};

/// A kernel that refuses what the real one refuses.
#[derive(Default)]
struct Model {
    found: Found,
    next_index: u32,
    recorded: BTreeSet<IpNet>,
}

impl Model {
    /// Makes it equal to a plan; returns how many steps that took.
    fn apply(&mut self, plan: &Plan) -> usize {
        self.recorded.extend(plan.routes.keys());
        let steps = difference(&self.found, plan, &self.recorded);
        for step in &steps {
            self.take(step);
        }
        self.recorded
            .retain(|range| plan.routes.contains_key(range));
        steps.len()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::DeleteRoute(range) => self.remove_route(range),
            Step::ReplaceRoute(range, way) => {
                let (gateway, interface) = match way {
                    Way::Direct { gateway, interface } => (*gateway, *interface),
                    Way::Encapsulated { version, gateway } => {
                        let device = &self.found.devices[version];
                        assert!(device.link.is_up);
                        assert!(
                            device.neighbours.iter().any(|one| one.address == *gateway),
                            "the gateway is not known yet"
                        );
                        (*gateway, device.link.index)
                    }
                };
                self.remove_route(range);
                self.found.routes.push(FoundRoute {
                    range: *range,
                    gateway: Some(gateway),
                    interface,
                    protocol: PROTOCOL,
                });
            }
            Step::DeleteDevice(version) => {
                let device = self.found.devices.remove(version).unwrap();
                let index = device.link.index;
                self.found.routes.retain(|route| route.interface != index);
            }
            Step::AddDevice(version, vxlan, mtu) => {
                self.next_index += 1;
                let link = Link {
                    index: 100 + self.next_index,
                    name: String::new(),
                    mtu: *mtu,
                    is_up: false,
                    is_broadcast: true,
                    vxlan: Some(*vxlan),
                };
                let device = FoundDevice {
                    link,
                    addresses: Vec::new(),
                    neighbours: Vec::new(),
                    tunnels: Vec::new(),
                };
                assert!(self.found.devices.insert(*version, device).is_none());
            }
            Step::Change(version, change) => self.change(*version, change),
        }
    }

    fn change(&mut self, version: Version, change: &DeviceStep) {
        let device = self.found.devices.get_mut(&version).unwrap();
        match change {
            DeviceStep::SetMtu(mtu) => device.link.mtu = *mtu,
            DeviceStep::AddAddress(address) => device.addresses.push(*address),
            DeviceStep::RemoveAddress(address) => device.addresses.retain(|one| one != address),
            DeviceStep::SetUp => device.link.is_up = true,
            DeviceStep::SetTunnel(tunnel) => {
                device.tunnels.retain(|one| one.mac != tunnel.mac);
                device.tunnels.push(*tunnel);
            }
            DeviceStep::DeleteTunnel(tunnel) => device.tunnels.retain(|one| one != tunnel),
            DeviceStep::SetNeighbour(entry) => {
                device.neighbours.retain(|one| one.address != entry.address);
                device.neighbours.push(*entry);
            }
            DeviceStep::DeleteNeighbour(address) => {
                device.neighbours.retain(|one| one.address != *address);
            }
        }
    }

    fn remove_route(&mut self, range: &IpNet) {
        self.found.routes.retain(|route| route.range != *range);
    }

    fn compare(&self, plan: &Plan) {
        let versions: Vec<_> = plan.devices.keys().collect();
        assert_eq!(self.found.devices.keys().collect::<Vec<_>>(), versions);
        for (version, wanted) in &plan.devices {
            let has = &self.found.devices[version];
            assert_eq!(has.link.vxlan, Some(wanted.vxlan));
            assert_eq!((has.link.mtu, has.link.is_up), (wanted.mtu, true));
            let tunnels: BTreeMap<_, _> = has.tunnels.iter().map(|one| (one.mac, *one)).collect();
            assert_eq!(tunnels, wanted.tunnels);
            let neighbours = has.neighbours.iter().map(|one| (one.address, one.mac));
            assert_eq!(neighbours.collect::<BTreeMap<_, _>>(), wanted.neighbours);
        }

        let ranges: BTreeSet<_> = self.found.routes.iter().map(|route| route.range).collect();
        assert_eq!(ranges, plan.routes.keys().copied().collect());
        for route in &self.found.routes {
            let (gateway, interface) = match plan.routes[&route.range] {
                Way::Direct { gateway, interface } => (gateway, interface),
                Way::Encapsulated { version, gateway } => {
                    (gateway, self.found.devices[&version].link.index)
                }
            };
            assert_eq!((route.gateway, route.interface), (Some(gateway), interface));
        }
    }

    /// What an operator does to it.
    fn disturb(&mut self, what: u8, which: prop::sample::Index) {
        let Some(version) = self.found.devices.keys().next().copied() else {
            return;
        };
        let device = self.found.devices.get_mut(&version).unwrap();
        match what {
            0 => self.take(&Step::DeleteDevice(version)),
            1 => self.found.routes.clear(),
            2 => device.neighbours.clear(),
            3 => device.tunnels.clear(),
            4 => device.link.mtu = 1280,
            5 => device.addresses.clear(),
            6 if !device.neighbours.is_empty() => {
                let at = which.index(device.neighbours.len());
                let address = device.neighbours[at].address;
                device.neighbours[at] = Neighbour {
                    address,
                    mac: [2; 6],
                };
            }
            _ => {
                device.link.is_up = false;
                let index = device.link.index;
                self.found.routes.retain(|route| route.interface != index);
            }
        }
    }
}

/// A plan for the first of some nodes: which exist, where they are, in which generation of ranges.
fn plans() -> impl Strategy<Value = Plan> {
    let one = prop::option::of((any::<bool>(), 0_u8..3, any::<bool>()));
    let mode = prop::sample::select(vec![
        Encapsulation::Never,
        Encapsulation::CrossSubnet,
        Encapsulation::Always,
    ]);
    (prop::collection::vec(one, 0..6), mode, 0_u8..3).prop_map(|(all, mode, own)| {
        let own = node("own", &[&format!("10.240.{own}.0/24")], &["192.0.2.1"]);
        let others: Vec<Node> = all
            .iter()
            .zip(1_u8..)
            .filter_map(|(one, number)| {
                let (near, generation, six) = (*one)?;
                let segment = if near { "192.0.2" } else { "198.51.100" };
                let address = match six {
                    true if near => format!("2001:db8:2::{number:x}"),
                    _ => format!("{segment}.{number}"),
                };
                Some(node(
                    &format!("node-{number}"),
                    &[
                        &format!("10.24{generation}.{}.0/24", 100 + number),
                        &format!("fd00:0:{generation}:{number:x}::/64"),
                    ],
                    &[&address],
                ))
            })
            .collect();
        plan(&own, &others, &machine(&others), mode, &[])
    })
}

proptest! {
    /// Whatever the kernel had before, it is equal to the plan afterwards, and stays so without
    /// further changes.
    #[test]
    fn the_kernel_becomes_the_plan(
        history in prop::collection::vec(
            (plans(), prop::option::of((0_u8..8, any::<prop::sample::Index>()))),
            1..8,
        ),
    ) {
        let mut model = Model::default();
        for (plan, disturbance) in history {
            model.apply(&plan);
            model.compare(&plan);
            prop_assert_eq!(model.apply(&plan), 0);

            if let Some((what, which)) = disturbance {
                model.disturb(what, which);
                model.apply(&plan);
                model.compare(&plan);
            }
        }
        model.apply(&Plan::default());
        prop_assert_eq!(model.found, Found::default());
    }

    /// Routes of another instance look alike and stay.
    #[test]
    fn routes_of_others_stay(plan in plans()) {
        let mut model = Model::default();
        let foreign = FoundRoute {
            range: "10.99.0.0/24".parse().unwrap(),
            gateway: Some("192.0.2.7".parse().unwrap()),
            interface: 2,
            protocol: PROTOCOL,
        };
        model.found.routes.push(foreign);
        model.apply(&plan);
        model.apply(&Plan::default());
        prop_assert_eq!(model.found.routes, vec![foreign]);
    }
}
