//! Creates the bridge, and connects pods to it.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::Path;

use coracle_netlink::route::{Connection, MAX_NAME, Mac, Peer};
use coracle_netlink::{Version, enable_forwarding};
use ipnet::IpNet;

use super::BridgeConfig;
use crate::Error;
use crate::pool::Pool;

/// The name of a pod's interface; CRI clients expect it.
const POD_INTERFACE: &str = "eth0";

/// Without a setting or a default route.
const DEFAULT_MTU: u32 = 1500;

/// Reconciles the bridge with the configuration; returns its index and MTU. `held` are the
/// addresses of pods.
pub(super) fn reconcile_bridge(
    host: &mut Connection,
    config: &BridgeConfig,
    pools: &[Pool],
    held: &[IpAddr],
) -> Result<(u32, u32), Error> {
    let mtu = match config.mtu {
        Some(mtu) => mtu,
        None => match host.uplink()? {
            Some(uplink) => host.mtu(uplink)?.unwrap_or(DEFAULT_MTU),
            None => DEFAULT_MTU,
        },
    };

    let name = &config.name;
    match host.add_bridge(name, mac_of(pools[0].gateway()), mtu) {
        Err(error) if !error.is_present() => return Err(error.into()),
        _ => {}
    }

    let bridge = host
        .link(name)?
        .ok_or_else(|| Error::BridgeGone(name.clone()))?;
    host.set_mtu(bridge, mtu)?;
    let wanted: Vec<IpNet> = pools
        .iter()
        .map(|pool| interface_address(pool, pool.gateway()))
        .collect();

    // The gateway of an earlier range stays while a pod uses it.
    let used = |network: &IpNet| {
        wanted.contains(network) || held.iter().any(|address| network.contains(address))
    };
    for stale in host
        .addresses(bridge)?
        .iter()
        .filter(|network| !used(network))
    {
        host.remove_address(bridge, *stale)?;
    }

    for address in &wanted {
        host.add_address(bridge, *address)?;
    }

    refuse_router_advertisements(name);
    host.set_up(bridge)?;
    let has_family = |range: &&IpNet| {
        wanted
            .iter()
            .any(|own| own.addr().is_ipv4() == range.addr().is_ipv4())
    };

    for range in config.service_ranges.iter().filter(has_family) {
        host.add_route(*range, bridge)?;
    }

    for address in &wanted {
        enable_forwarding(Version::of(address.addr()))?;
    }

    Ok((bridge, mtu))
}

/// The parameters of a pod's connection.
pub(super) struct Wire<'a> {
    pub(super) bridge: u32,
    pub(super) mtu: u32,
    pub(super) pools: &'a [Pool],
    /// One per pool.
    pub(super) addresses: &'a [IpAddr],
}

impl Wire<'_> {
    pub(super) fn connect(
        &self,
        host: &mut Connection,
        port: &str,
        namespace: &File,
    ) -> Result<(), Error> {
        // Before the interface exists, so that it never accepts router advertisements.
        let mut pod = Connection::open_in(namespace, || refuse_router_advertisements("default"))?;
        let mac = mac_of(self.addresses[0]);
        host.add_pair(
            port,
            self.bridge,
            self.mtu,
            &Peer {
                name: POD_INTERFACE,
                mac,
                namespace,
            },
        )?;

        if let Some(index) = host.link(port)? {
            host.set_hairpin(index)?;
        }

        let inside = pod
            .link(POD_INTERFACE)?
            .ok_or_else(|| Error::BridgeGone(POD_INTERFACE.to_owned()))?;
        for (pool, address) in self.pools.iter().zip(self.addresses) {
            pod.add_address(inside, interface_address(pool, *address))?;
        }

        pod.set_up(inside)?;

        for pool in self.pools {
            pod.add_default_route(pool.gateway(), inside)?;
        }

        Ok(())
    }
}

/// Sets the MTU of both ends of a pod's connection.
pub(super) fn set_mtu(
    host: &mut Connection,
    port: &str,
    netns: &Path,
    mtu: u32,
) -> Result<(), Error> {
    let Some(outside) = host.link(port)? else {
        return Ok(());
    };
    host.set_mtu(outside, mtu)?;

    let namespace =
        File::open(netns).map_err(|source| Error::Namespace(netns.to_owned(), source))?;
    let mut pod = Connection::open_in(&namespace, || {})?;
    if let Some(inside) = pod.link(POD_INTERFACE)? {
        pod.set_mtu(inside, mtu)?;
    }

    Ok(())
}

/// The name of a pod's port on the bridge: the prefix of the sandbox ID is unique enough.
pub(super) fn name_of_port(sandbox: &str) -> String {
    format!("veth{sandbox}").chars().take(MAX_NAME).collect()
}

fn interface_address(pool: &Pool, address: IpAddr) -> IpNet {
    IpNet::new(address, pool.range().prefix_len())
        .expect("a pool's addresses have the family of its range")
}

/// A MAC address derived from the IP: an ARP cache entry of an earlier pod stays valid.
fn mac_of(address: IpAddr) -> Mac {
    let tail: [u8; 4] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => *address
            .octets()
            .last_chunk()
            .expect("an IPv6 address has 16 bytes"),
    };
    [0x0a, 0x58, tail[0], tail[1], tail[2], tail[3]]
}

/// A pod must not become the router of others on the bridge. The file does not exist without IPv6.
fn refuse_router_advertisements(interface: &str) {
    let setting = format!("/proc/sys/net/ipv6/conf/{interface}/accept_ra");
    if let Err(error) = fs::write(&setting, "0")
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, setting, "cannot disable router advertisements");
    }
}
