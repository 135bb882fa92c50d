//! Addresses and routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::links::flags;
use super::message::{Message, attributes, number};
use super::{Connection, NetlinkError};

impl Connection {
    /// Adds an address without duplicate address detection: the ledger ensures that it is unique.
    pub(crate) fn add_address(&mut self, index: u32, address: IpNet) -> Result<(), NetlinkError> {
        let make = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = Message::new(
            libc::RTM_NEWADDR,
            flags(make),
            &address_part(index, address),
        )
        .with(libc::IFA_LOCAL, &octets(address.addr()))
        .with(libc::IFA_ADDRESS, &octets(address.addr()))
        .with_number(libc::IFA_FLAGS, libc::IFA_F_NODAD);

        match self.change("add an address", message) {
            Err(error) if error.is_present() => Ok(()),
            done => done,
        }
    }

    pub(crate) fn remove_address(
        &mut self,
        index: u32,
        address: IpNet,
    ) -> Result<(), NetlinkError> {
        let message = Message::new(
            libc::RTM_DELADDR,
            flags(libc::NLM_F_ACK),
            &address_part(index, address),
        )
        .with(libc::IFA_LOCAL, &octets(address.addr()));
        match self.change("remove an address", message) {
            Err(error) if error.is_absent() => Ok(()),
            done => done,
        }
    }

    /// The addresses of an interface, without link-local ones.
    pub(crate) fn addresses(&mut self, index: u32) -> Result<Vec<IpNet>, NetlinkError> {
        let message = Message::new(
            libc::RTM_GETADDR,
            flags(libc::NLM_F_DUMP),
            &[0; ADDRESS_PART],
        );
        let found = self.ask("list addresses", message)?;
        Ok(found
            .iter()
            .filter(|body| body.len() >= ADDRESS_PART)
            .filter_map(|body| read(index, body))
            .collect())
    }

    /// Adds a link-scope route, if it does not exist.
    pub(crate) fn add_route(&mut self, range: IpNet, index: u32) -> Result<(), NetlinkError> {
        let make = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let part = route_part(range.addr(), range.prefix_len(), libc::RT_SCOPE_LINK);
        let message = Message::new(libc::RTM_NEWROUTE, flags(make), &part)
            .with(libc::RTA_DST, &octets(range.network()))
            .with_number(libc::RTA_OIF, index);
        match self.change("add a route", message) {
            Err(error) if error.is_present() => Ok(()),
            done => done,
        }
    }

    /// Adds a default route.
    pub(crate) fn add_default_route(
        &mut self,
        gateway: IpAddr,
        index: u32,
    ) -> Result<(), NetlinkError> {
        let make = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let part = route_part(gateway, 0, libc::RT_SCOPE_UNIVERSE);
        let message = Message::new(libc::RTM_NEWROUTE, flags(make), &part)
            .with(libc::RTA_GATEWAY, &octets(gateway))
            .with_number(libc::RTA_OIF, index);
        self.change("add the default route", message)
    }

    /// The interface of the default route, if there is one.
    pub(crate) fn uplink(&mut self) -> Result<Option<u32>, NetlinkError> {
        let message = Message::new(
            libc::RTM_GETROUTE,
            flags(libc::NLM_F_DUMP),
            &[0; ROUTE_PART],
        );
        let routes = self.ask("list routes", message)?;
        let to_everywhere = routes.iter().filter(|body| {
            body.len() >= ROUTE_PART && body[1] == 0 && body[4] == MAIN_TABLE && body[7] == UNICAST
        });

        Ok(to_everywhere
            .flat_map(|body| attributes(&body[ROUTE_PART..]))
            .find(|(kind, _)| *kind == libc::RTA_OIF)
            .map(|(_, index)| number(index)))
    }
}

const ADDRESS_PART: usize = 8;
const ROUTE_PART: usize = 12;
const MAIN_TABLE: u8 = libc::RT_TABLE_MAIN;
const UNICAST: u8 = libc::RTN_UNICAST;
/// The protocol that other bridges use as well.
const PROTOCOL_BOOT: u8 = libc::RTPROT_BOOT;

/// Family, prefix length, flags, scope, interface.
fn address_part(index: u32, address: IpNet) -> [u8; ADDRESS_PART] {
    let mut bytes = [0; ADDRESS_PART];
    bytes[0] = family(address.addr());
    bytes[1] = address.prefix_len();
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes
}

/// Family, prefix lengths, and from the fifth byte: table, protocol, scope, type.
fn route_part(of_family: IpAddr, prefix: u8, scope: u8) -> [u8; ROUTE_PART] {
    let mut bytes = [0; ROUTE_PART];
    bytes[0] = family(of_family);
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
    if number(&fixed[4..]) != index || fixed[3] == libc::RT_SCOPE_LINK {
        return None;
    }

    let of_kind = |wanted: u16| {
        attributes(rest)
            .find(|(kind, _)| *kind == wanted)
            .map(|(_, value)| value)
    };
    let octets = of_kind(libc::IFA_LOCAL).or_else(|| of_kind(libc::IFA_ADDRESS))?;
    let address = match octets.len() {
        4 => IpAddr::from(Ipv4Addr::from(*octets.first_chunk::<4>()?)),
        _ => IpAddr::from(Ipv6Addr::from(*octets.first_chunk::<16>()?)),
    };

    IpNet::new(address, fixed[1]).ok()
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    u8::try_from(family).expect("families of addresses are small numbers")
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
