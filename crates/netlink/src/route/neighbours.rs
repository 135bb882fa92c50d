//! Permanent entries of interfaces about others: the hardware address of a neighbour, and where a
//! VXLAN interface sends what is addressed to a hardware address.

use std::net::IpAddr;

use super::{Connection, Mac};
use crate::message::{find, native};
use crate::{NetlinkError, Version, address, octets};

/// The hardware address of an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    pub address: IpAddr,
    pub mac: Mac,
}

/// Where a VXLAN interface sends frames for a hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tunnel {
    pub mac: Mac,
    /// The other machine.
    pub address: IpAddr,
    /// The VXLAN network identifier under which it receives; none: that of the interface.
    pub identifier: Option<u32>,
}

impl Connection {
    /// Adds or replaces the permanent entry of an address.
    pub fn set_neighbour(&mut self, index: u32, entry: &Neighbour) -> Result<(), NetlinkError> {
        let fixed = part(family(entry.address), index, libc::NUD_PERMANENT, 0);
        self.change(
            "add a neighbour",
            (libc::RTM_NEWNEIGH, REPLACE),
            &fixed,
            |message| {
                message.put(libc::NDA_DST, &octets(entry.address));
                message.put(libc::NDA_LLADDR, &entry.mac);
            },
        )
    }

    /// Deletes the entry of an address. Idempotent.
    pub fn delete_neighbour(&mut self, index: u32, ip: IpAddr) -> Result<(), NetlinkError> {
        let deleted = self.change(
            "delete a neighbour",
            (libc::RTM_DELNEIGH, libc::NLM_F_ACK),
            &part(family(ip), index, 0, 0),
            |message| message.put(libc::NDA_DST, &octets(ip)),
        );
        without_absence(deleted)
    }

    /// The permanent entries of an interface.
    pub fn neighbours(&mut self, index: u32) -> Result<Vec<Neighbour>, NetlinkError> {
        let mut all = Vec::new();
        for version in Version::BOTH {
            let found = self.ask(
                "list neighbours",
                (libc::RTM_GETNEIGH, libc::NLM_F_DUMP),
                &part(version.address_family(), 0, 0, 0),
                |_| {},
            )?;
            all.extend(found.iter().filter_map(|body| read_neighbour(index, body)));
        }
        Ok(all)
    }

    /// Adds or replaces the entry of a hardware address of a VXLAN interface.
    pub fn set_tunnel(&mut self, index: u32, entry: &Tunnel) -> Result<(), NetlinkError> {
        self.change(
            "add a forwarding entry",
            (libc::RTM_NEWNEIGH, REPLACE),
            &part(bridge_family(), index, libc::NUD_PERMANENT, libc::NTF_SELF),
            |message| {
                message.put(libc::NDA_LLADDR, &entry.mac);
                message.put(libc::NDA_DST, &octets(entry.address));
                if let Some(identifier) = entry.identifier {
                    message.native(libc::NDA_VNI, identifier);
                }
            },
        )
    }

    /// Deletes an entry of a VXLAN interface. Idempotent.
    pub fn delete_tunnel(&mut self, index: u32, entry: &Tunnel) -> Result<(), NetlinkError> {
        let deleted = self.change(
            "delete a forwarding entry",
            (libc::RTM_DELNEIGH, libc::NLM_F_ACK),
            &part(bridge_family(), index, 0, libc::NTF_SELF),
            |message| {
                message.put(libc::NDA_LLADDR, &entry.mac);
                message.put(libc::NDA_DST, &octets(entry.address));
                if let Some(identifier) = entry.identifier {
                    message.native(libc::NDA_VNI, identifier);
                }
            },
        );
        without_absence(deleted)
    }

    /// The permanent entries of a VXLAN interface.
    pub fn tunnels(&mut self, index: u32) -> Result<Vec<Tunnel>, NetlinkError> {
        let found = self.ask(
            "list forwarding entries",
            (libc::RTM_GETNEIGH, libc::NLM_F_DUMP),
            &part(bridge_family(), 0, 0, 0),
            |_| {},
        )?;
        Ok(found
            .iter()
            .filter_map(|body| read_tunnel(index, body))
            .collect())
    }
}

const REPLACE: i32 = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
const FIXED: usize = 12;

/// Family, padding, interface, state, flags, type.
fn part(family: u8, index: u32, state: u16, flags: u8) -> [u8; FIXED] {
    let mut bytes = [0; FIXED];
    bytes[0] = family;
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..10].copy_from_slice(&state.to_ne_bytes());
    bytes[10] = flags;
    bytes
}

fn family(of: IpAddr) -> u8 {
    Version::of(of).address_family()
}

fn bridge_family() -> u8 {
    u8::try_from(libc::AF_BRIDGE).expect("address families are small numbers")
}

fn without_absence(result: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
    match result {
        Err(error) if error.is_absent() => Ok(()),
        done => done,
    }
}

/// The attributes of a permanent entry of the interface.
fn permanent(index: u32, body: &[u8]) -> Option<&[u8]> {
    let (fixed, rest) = body.split_at_checked(FIXED)?;
    let state = u16::from_ne_bytes([fixed[8], fixed[9]]);
    (native(&fixed[4..]) == index && state & libc::NUD_PERMANENT != 0).then_some(rest)
}

fn mac(attributes: &[u8]) -> Option<Mac> {
    find(attributes, libc::NDA_LLADDR)?.try_into().ok()
}

fn read_neighbour(index: u32, body: &[u8]) -> Option<Neighbour> {
    let rest = permanent(index, body)?;
    Some(Neighbour {
        address: find(rest, libc::NDA_DST).and_then(address)?,
        mac: mac(rest)?,
    })
}

fn read_tunnel(index: u32, body: &[u8]) -> Option<Tunnel> {
    let rest = permanent(index, body)?;
    Some(Tunnel {
        mac: mac(rest)?,
        address: find(rest, libc::NDA_DST).and_then(address)?,
        identifier: find(rest, libc::NDA_VNI).map(native),
    })
}
