//! What must change in the kernel. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use coracle_netlink::Version;
use coracle_netlink::route::{FoundRoute, Neighbour, Tunnel, Vxlan};
use ipnet::IpNet;

use crate::observe::{Found, FoundDevice};
use crate::plan::{Device, Plan, Way};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    DeleteRoute(IpNet),
    ReplaceRoute(IpNet, Way),
    DeleteDevice(Version),
    AddDevice(Version, Vxlan, u32),
    /// A change of an interface that exists by then.
    Change(Version, DeviceStep),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeviceStep {
    SetMtu(u32),
    AddAddress(IpNet),
    RemoveAddress(IpNet),
    SetUp,
    SetTunnel(Tunnel),
    DeleteTunnel(Tunnel),
    SetNeighbour(Neighbour),
    DeleteNeighbour(IpAddr),
}

/// The changes that make the kernel equal to the plan, in order: a route is added after what it
/// leads through, and deleted before. `recorded` are the routes that this instance added earlier.
pub(crate) fn difference(found: &Found, plan: &Plan, recorded: &BTreeSet<IpNet>) -> Vec<Step> {
    let mut steps = stale_routes(found, plan, recorded);
    let mut made = BTreeSet::new();

    for version in Version::BOTH {
        let wanted = plan.devices.get(&version);
        let has = found.devices.get(&version);
        // What cannot be changed makes another interface; its entries go with it.
        let kept = has.filter(|has| {
            wanted.is_some_and(|wanted| has.link.vxlan.as_ref() == Some(&wanted.vxlan))
        });

        if has.is_some() && kept.is_none() {
            steps.push(Step::DeleteDevice(version));
        }
        if let Some(wanted) = wanted {
            if kept.is_none() {
                made.insert(version);
                steps.push(Step::AddDevice(version, wanted.vxlan, wanted.mtu));
            }
            let changes = device_steps(kept, wanted);
            steps.extend(changes.into_iter().map(|step| Step::Change(version, step)));
        }
    }

    let current: BTreeMap<IpNet, &FoundRoute> = found
        .routes
        .iter()
        .map(|route| (route.range, route))
        .collect();
    for (range, way) in &plan.routes {
        let is_there = current
            .get(range)
            .is_some_and(|route| is_same(route, way, found, &made));
        if !is_there {
            steps.push(Step::ReplaceRoute(*range, *way));
        }
    }

    steps
}

/// Our routes that no plan has any more.
fn stale_routes(found: &Found, plan: &Plan, recorded: &BTreeSet<IpNet>) -> Vec<Step> {
    let devices: BTreeSet<u32> = found
        .devices
        .values()
        .map(|device| device.link.index)
        .collect();
    found
        .routes
        .iter()
        .filter(|route| recorded.contains(&route.range) || devices.contains(&route.interface))
        .filter(|route| !plan.routes.contains_key(&route.range))
        .map(|route| Step::DeleteRoute(route.range))
        .collect()
}

/// Whether a route is the way. One through an interface that is made anew is gone by then.
fn is_same(route: &FoundRoute, way: &Way, found: &Found, made: &BTreeSet<Version>) -> bool {
    match way {
        Way::Direct { gateway, interface } => {
            route.gateway == Some(*gateway) && route.interface == *interface
        }
        Way::Encapsulated { version, gateway } => {
            let device = found.devices.get(version);
            let device = device.filter(|_| !made.contains(version));
            route.gateway == Some(*gateway)
                && device.is_some_and(|device| device.link.index == route.interface)
        }
    }
}

fn device_steps(has: Option<&FoundDevice>, wanted: &Device) -> Vec<DeviceStep> {
    let mut steps = Vec::new();
    let addresses = has.map_or(&[][..], |has| &has.addresses);
    let tunnels = has.map_or(&[][..], |has| &has.tunnels);
    let neighbours = has.map_or(&[][..], |has| &has.neighbours);

    if has.is_some_and(|has| has.link.mtu != wanted.mtu) {
        steps.push(DeviceStep::SetMtu(wanted.mtu));
    }

    let stale = addresses
        .iter()
        .filter(|one| !wanted.addresses.contains(one));
    steps.extend(stale.map(|address| DeviceStep::RemoveAddress(*address)));
    let new = wanted
        .addresses
        .iter()
        .filter(|one| !addresses.contains(one));
    steps.extend(new.map(|address| DeviceStep::AddAddress(*address)));

    // Entries of an interface that is down are lost.
    if !has.is_some_and(|has| has.link.is_up) {
        steps.push(DeviceStep::SetUp);
    }

    // One that goes to another address is replaced: no packet is without a way meanwhile.
    let new = wanted.tunnels.values().filter(|one| !tunnels.contains(one));
    steps.extend(new.map(|tunnel| DeviceStep::SetTunnel(*tunnel)));
    for tunnel in tunnels {
        if wanted.tunnels.get(&tunnel.mac) != Some(tunnel) {
            steps.push(DeviceStep::DeleteTunnel(*tunnel));
        }
    }

    for neighbour in neighbours {
        if !wanted.neighbours.contains_key(&neighbour.address) {
            steps.push(DeviceStep::DeleteNeighbour(neighbour.address));
        }
    }
    let wanted = wanted.neighbours.iter().map(|(address, mac)| Neighbour {
        address: *address,
        mac: *mac,
    });
    let new = wanted.filter(|one| !neighbours.contains(one));
    steps.extend(new.map(DeviceStep::SetNeighbour));

    steps
}
