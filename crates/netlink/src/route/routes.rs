//! Routes of the main table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::Connection;
use crate::message::{attributes, find, native};
use crate::{NetlinkError, Version, address, octets};

/// A route through a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub range: IpNet,
    pub gateway: IpAddr,
    /// The index of the outgoing interface, on which the gateway is reached directly.
    pub interface: u32,
}

/// A route of the main table, as far as it concerns those who compare it with a [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRoute {
    pub range: IpNet,
    pub gateway: Option<IpAddr>,
    pub interface: u32,
    /// Who added it: `RTPROT_*`.
    pub protocol: u8,
}

/// How the kernel would send to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    pub interface: u32,
    /// Whether it goes through a router.
    pub has_gateway: bool,
    /// The MTU of the route, if it has one of its own.
    pub mtu: Option<u32>,
}

impl Connection {
    /// Adds a link-scope route, if it does not exist.
    pub fn add_route(&mut self, range: IpNet, index: u32) -> Result<(), NetlinkError> {
        let added = self.change(
            "add a route",
            (libc::RTM_NEWROUTE, MAKE),
            &route_part(range.addr(), range.prefix_len(), libc::RT_SCOPE_LINK),
            |message| {
                message.put(libc::RTA_DST, &octets(range.network()));
                message.native(libc::RTA_OIF, index);
            },
        );
        match added {
            Err(error) if error.is_present() => Ok(()),
            done => done,
        }
    }

    /// Adds a default route.
    pub fn add_default_route(&mut self, gateway: IpAddr, index: u32) -> Result<(), NetlinkError> {
        self.change(
            "add the default route",
            (libc::RTM_NEWROUTE, MAKE),
            &route_part(gateway, 0, libc::RT_SCOPE_UNIVERSE),
            |message| {
                message.put(libc::RTA_GATEWAY, &octets(gateway));
                message.native(libc::RTA_OIF, index);
            },
        )
    }

    /// Adds a route, or replaces that to the same range. The gateway need not be in a network of
    /// the interface, but no other interface may have a route to an IPv6 gateway.
    pub fn replace_route(&mut self, route: &Route, protocol: u8) -> Result<(), NetlinkError> {
        let range = route.range;
        let mut fixed = route_part(range.addr(), range.prefix_len(), libc::RT_SCOPE_UNIVERSE);
        fixed[5] = protocol;
        if !is_link_local(route.gateway) {
            fixed[8..12].copy_from_slice(&ON_LINK.to_ne_bytes());
        }

        self.change(
            "add a route",
            (libc::RTM_NEWROUTE, REPLACE),
            &fixed,
            |message| {
                message.put(libc::RTA_DST, &octets(range.network()));
                message.put(libc::RTA_GATEWAY, &octets(route.gateway));
                message.native(libc::RTA_OIF, route.interface);
            },
        )
    }

    /// Deletes the route to a range that has this protocol. Idempotent.
    pub fn delete_route(&mut self, range: IpNet, protocol: u8) -> Result<(), NetlinkError> {
        // Of any scope.
        let mut fixed = route_part(range.addr(), range.prefix_len(), libc::RT_SCOPE_NOWHERE);
        fixed[5] = protocol;

        let deleted = self.change(
            "delete a route",
            (libc::RTM_DELROUTE, libc::NLM_F_ACK),
            &fixed,
            |message| message.put(libc::RTA_DST, &octets(range.network())),
        );
        match deleted {
            Err(error) if error.is_absent() => Ok(()),
            done => done,
        }
    }

    /// The unicast routes of an IP version in the main table.
    pub fn routes(&mut self, version: Version) -> Result<Vec<FoundRoute>, NetlinkError> {
        let mut fixed = [0; ROUTE_PART];
        fixed[0] = version.address_family();
        let found = self.ask(
            "list routes",
            (libc::RTM_GETROUTE, libc::NLM_F_DUMP),
            &fixed,
            |_| {},
        )?;
        Ok(found.iter().filter_map(|body| read(body)).collect())
    }

    /// How the kernel would send to an address; none if there is no route, or if it is an address
    /// of this machine.
    pub fn route_to(&mut self, target: IpAddr) -> Result<Option<Lookup>, NetlinkError> {
        let prefix = IpNet::from(target).prefix_len();
        let mut fixed = [0; ROUTE_PART];
        fixed[0] = Version::of(target).address_family();
        fixed[1] = prefix;

        let found = self.ask(
            "look up a route",
            (libc::RTM_GETROUTE, libc::NLM_F_ACK),
            &fixed,
            |message| message.put(libc::RTA_DST, &octets(target)),
        );
        match found {
            Ok(found) => Ok(found.first().and_then(|body| lookup(body))),
            Err(error) if error.is_absent() || error.is_unreachable() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The interface of the default route, if there is one.
    pub fn uplink(&mut self) -> Result<Option<u32>, NetlinkError> {
        let mut found = None;
        for version in Version::BOTH {
            let routes = self.routes(version)?;
            found = found.or(routes
                .iter()
                .find(|route| route.range.prefix_len() == 0)
                .map(|route| route.interface));
        }
        Ok(found)
    }
}

const MAKE: i32 = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
const REPLACE: i32 = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
const ROUTE_PART: usize = 12;
const MAIN_TABLE: u8 = libc::RT_TABLE_MAIN;
const UNICAST: u8 = libc::RTN_UNICAST;
/// The protocol that other bridges use as well.
const PROTOCOL_BOOT: u8 = libc::RTPROT_BOOT;
/// `RTNH_F_ONLINK`, `RTM_F_CLONED` and `RTAX_MTU` of the kernel's headers.
const ON_LINK: u32 = 4;
const CLONED: u32 = 0x200;
const METRIC_MTU: u16 = 2;

/// Family, prefix lengths, and from the fifth byte: table, protocol, scope, type.
fn route_part(of_family: IpAddr, prefix: u8, scope: u8) -> [u8; ROUTE_PART] {
    let mut bytes = [0; ROUTE_PART];
    bytes[0] = Version::of(of_family).address_family();
    bytes[1] = prefix;
    bytes[4] = MAIN_TABLE;
    bytes[5] = PROTOCOL_BOOT;
    bytes[6] = scope;
    bytes[7] = UNICAST;
    bytes
}

/// Such a gateway is always one of the interface's link.
fn is_link_local(gateway: IpAddr) -> bool {
    matches!(gateway, IpAddr::V6(gateway) if gateway.is_unicast_link_local())
}

fn read(body: &[u8]) -> Option<FoundRoute> {
    let (fixed, rest) = body.split_at_checked(ROUTE_PART)?;
    if fixed[4] != MAIN_TABLE || fixed[7] != UNICAST || native(&fixed[8..]) & CLONED != 0 {
        return None;
    }

    let range = match find(rest, libc::RTA_DST) {
        Some(octets) => address(octets)?,
        None if i32::from(fixed[0]) == libc::AF_INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };

    Some(FoundRoute {
        range: IpNet::new(range, fixed[1]).ok()?,
        gateway: find(rest, libc::RTA_GATEWAY).and_then(address),
        interface: find(rest, libc::RTA_OIF).map(native)?,
        protocol: fixed[5],
    })
}

fn lookup(body: &[u8]) -> Option<Lookup> {
    let (fixed, rest) = body.split_at_checked(ROUTE_PART)?;
    if fixed[7] != UNICAST {
        return None;
    }

    let mtu = find(rest, libc::RTA_METRICS).and_then(|metrics| find(metrics, METRIC_MTU));
    Some(Lookup {
        interface: find(rest, libc::RTA_OIF).map(native)?,
        has_gateway: attributes(rest)
            .any(|(kind, _)| kind == libc::RTA_GATEWAY || kind == libc::RTA_VIA),
        mtu: mtu.map(native),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_routes_are_ignored() {
        let mut body = route_part(IpAddr::V4(Ipv4Addr::LOCALHOST), 8, 0).to_vec();
        assert_eq!(read(&body), None, "without an interface");
        assert_eq!(lookup(&body), None);
        body.truncate(5);
        assert_eq!(read(&body), None);
        assert_eq!(lookup(&body), None);
    }
}
