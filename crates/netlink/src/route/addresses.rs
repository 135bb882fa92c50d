//! Addresses.

use ipnet::IpNet;

use super::Connection;
use crate::message::{find, native};
use crate::{NetlinkError, Version, address, octets};

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
}

const MAKE: i32 = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
const ADDRESS_PART: usize = 8;

/// Family, prefix length, flags, scope, interface.
fn address_part(index: u32, address: IpNet) -> [u8; ADDRESS_PART] {
    let mut bytes = [0; ADDRESS_PART];
    bytes[0] = Version::of(address.addr()).address_family();
    bytes[1] = address.prefix_len();
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes
}

/// An address of the interface that is not link-local.
fn read(index: u32, body: &[u8]) -> Option<IpNet> {
    let (fixed, rest) = body.split_at(ADDRESS_PART);
    if native(&fixed[4..]) != index || fixed[3] == libc::RT_SCOPE_LINK {
        return None;
    }

    let octets = find(rest, libc::IFA_LOCAL).or_else(|| find(rest, libc::IFA_ADDRESS))?;
    IpNet::new(address(octets)?, fixed[1]).ok()
}
