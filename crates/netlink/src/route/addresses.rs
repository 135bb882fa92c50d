//! Addresses and routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::Connection;
use crate::message::{attributes, find, native};
use crate::{NetlinkError, Version, octets};

impl Connection {
    /// Adds an address without duplicate address detection: the caller ensures that it is unique.
    pub fn add_address(&mut self, index: u32, address: IpNet) -> Result<(), NetlinkError> {
        let added = self.change(
            "add an address",
            (libc::RTM_NEWADDR, MAKE),
            &address_part(index, address),
            |message| {
                message.put(libc::IFA_LOCAL, &octets(address.addr()));
                message.put(libc::IFA_ADDRESS, &octets(address.addr()));
                message.native(libc::IFA_FLAGS, libc::IFA_F_NODAD);
            },
        );
        match added {
            Err(error) if error.is_present() => Ok(()),
            done => done,
        }
    }

    pub fn remove_address(&mut self, index: u32, address: IpNet) -> Result<(), NetlinkError> {
        let removed = self.change(
            "remove an address",
            (libc::RTM_DELADDR, libc::NLM_F_ACK),
            &address_part(index, address),
            |message| message.put(libc::IFA_LOCAL, &octets(address.addr())),
        );
        match removed {
            Err(error) if error.is_absent() => Ok(()),
            done => done,
        }
    }

    /// The addresses of an interface, without link-local ones.
    pub fn addresses(&mut self, index: u32) -> Result<Vec<IpNet>, NetlinkError> {
        let found = self.ask(
            "list addresses",
            (libc::RTM_GETADDR, libc::NLM_F_DUMP),
            &[0; ADDRESS_PART],
            |_| {},
        )?;
        Ok(found
            .iter()
            .filter(|body| body.len() >= ADDRESS_PART)
            .filter_map(|body| read(index, body))
            .collect())
    }

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

    /// The interface of the default route, if there is one.
    pub fn uplink(&mut self) -> Result<Option<u32>, NetlinkError> {
        let routes = self.ask(
            "list routes",
            (libc::RTM_GETROUTE, libc::NLM_F_DUMP),
            &[0; ROUTE_PART],
            |_| {},
        )?;
        let to_everywhere = routes.iter().filter(|body| {
            body.len() >= ROUTE_PART && body[1] == 0 && body[4] == MAIN_TABLE && body[7] == UNICAST
        });

        Ok(to_everywhere
            .flat_map(|body| attributes(&body[ROUTE_PART..]))
            .find(|(kind, _)| *kind == libc::RTA_OIF)
            .map(|(_, index)| native(index)))
    }
}

const MAKE: i32 = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
const ADDRESS_PART: usize = 8;
const ROUTE_PART: usize = 12;
const MAIN_TABLE: u8 = libc::RT_TABLE_MAIN;
const UNICAST: u8 = libc::RTN_UNICAST;
/// The protocol that other bridges use as well.
const PROTOCOL_BOOT: u8 = libc::RTPROT_BOOT;

/// Family, prefix length, flags, scope, interface.
fn address_part(index: u32, address: IpNet) -> [u8; ADDRESS_PART] {
    let mut bytes = [0; ADDRESS_PART];
    bytes[0] = Version::of(address.addr()).address_family();
    bytes[1] = address.prefix_len();
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes
}

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

/// An address of the interface that is not link-local.
fn read(index: u32, body: &[u8]) -> Option<IpNet> {
    let (fixed, rest) = body.split_at(ADDRESS_PART);
    if native(&fixed[4..]) != index || fixed[3] == libc::RT_SCOPE_LINK {
        return None;
    }

    let octets = find(rest, libc::IFA_LOCAL).or_else(|| find(rest, libc::IFA_ADDRESS))?;
    let address = match octets.len() {
        4 => IpAddr::from(Ipv4Addr::from(*octets.first_chunk::<4>()?)),
        _ => IpAddr::from(Ipv6Addr::from(*octets.first_chunk::<16>()?)),
    };

    IpNet::new(address, fixed[1]).ok()
}
