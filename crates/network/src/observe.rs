//! What the kernel has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use coracle_netlink::route::{Connection, FoundRoute, Link, Neighbour, Tunnel};
use coracle_netlink::{NetlinkError, Version};
use ipnet::IpNet;

use crate::plan::{Machine, Path};
use crate::run::Names;

/// What the kernel has of what a plan can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) devices: BTreeMap<Version, FoundDevice>,
    /// Routes that were added with our protocol number, by whichever instance.
    pub(crate) routes: Vec<FoundRoute>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundDevice {
    pub(crate) link: Link,
    pub(crate) addresses: Vec<IpNet>,
    pub(crate) neighbours: Vec<Neighbour>,
    pub(crate) tunnels: Vec<Tunnel>,
}

/// Marks our routes, in the place of the routing daemon's number.
pub(crate) const PROTOCOL: u8 = 201;

/// Without any interface that leads out of the machine.
const DEFAULT_MTU: u32 = 1500;

/// How packets get to these addresses, and what the machine has besides. `own` are addresses of
/// this node.
pub(crate) fn machine(
    host: &mut Connection,
    names: &Names,
    targets: impl Iterator<Item = IpAddr>,
) -> Result<Machine, NetlinkError> {
    let mut links: BTreeMap<u32, Option<Link>> = BTreeMap::new();
    let mut paths = BTreeMap::new();

    for target in targets.collect::<BTreeSet<_>>() {
        let Some(found) = host.route_to(target)? else {
            continue;
        };
        if let std::collections::btree_map::Entry::Vacant(new) = links.entry(found.interface) {
            new.insert(host.describe(found.interface)?);
        }
        let Some(link) = &links[&found.interface] else {
            continue;
        };

        let path = Path {
            interface: found.interface,
            is_direct: !found.has_gateway && link.is_broadcast,
            mtu: found.mtu.map_or(link.mtu, |mtu| mtu.min(link.mtu)),
        };
        paths.insert(target, path);
    }

    Ok(Machine {
        uplink_mtu: uplink_mtu(host, &paths)?,
        bridge: bridge_networks(host, names)?,
        paths,
    })
}

/// The MTU of the default route's interface. Without one, the smallest on the way to a node.
fn uplink_mtu(host: &mut Connection, paths: &BTreeMap<IpAddr, Path>) -> Result<u32, NetlinkError> {
    if let Some(uplink) = host.uplink()?
        && let Some(mtu) = host.mtu(uplink)?
    {
        return Ok(mtu);
    }
    Ok(paths
        .values()
        .map(|path| path.mtu)
        .min()
        .unwrap_or(DEFAULT_MTU))
}

fn bridge_networks(host: &mut Connection, names: &Names) -> Result<Vec<IpNet>, NetlinkError> {
    match host.link(&names.bridge)? {
        Some(bridge) => host.addresses(bridge),
        None => Ok(Vec::new()),
    }
}

/// What the kernel has of what a plan can say.
pub(crate) fn found(host: &mut Connection, names: &Names) -> Result<Found, NetlinkError> {
    let mut found = Found::default();
    for version in Version::BOTH {
        let routes = host.routes(version)?;
        found
            .routes
            .extend(routes.iter().filter(|route| route.protocol == PROTOCOL));

        if let Some(index) = host.link(names.device(version))?
            && let Some(link) = host.describe(index)?
        {
            let device = FoundDevice {
                link,
                addresses: host.addresses(index)?,
                neighbours: host.neighbours(index)?,
                tunnels: host.tunnels(index)?,
            };
            found.devices.insert(version, device);
        }
    }

    Ok(found)
}
