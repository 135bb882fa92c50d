//! The kernel's network configuration, through netlink sockets.
//!
//! [`route`] has interfaces, addresses, routes and neighbours, [`nftables`] the packet filter, [`conntrack`]
//! tracked connections, `forwarding` the setting that makes a machine a router. A `socket` belongs to the network namespace of the thread that opened it,
//! whichever thread uses it later; `message` encodes requests and decodes answers. Nothing here
//! runs a program.

pub mod conntrack;
mod forwarding;
mod message;
pub mod nftables;
pub mod route;
mod socket;
mod sys;

pub use forwarding::{ForwardingError, enable_forwarding};
pub use socket::NetlinkError;

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V4,
    V6,
}

impl Version {
    pub const BOTH: [Version; 2] = [Version::V4, Version::V6];

    /// The version of an address.
    pub fn of(address: std::net::IpAddr) -> Version {
        if address.is_ipv4() {
            Version::V4
        } else {
            Version::V6
        }
    }

    /// The kernel's address family.
    pub(crate) fn address_family(self) -> u8 {
        let family = match self {
            Version::V4 => libc::AF_INET,
            Version::V6 => libc::AF_INET6,
        };
        u8::try_from(family).expect("address families are small numbers")
    }
}

/// The octets of an address, in network order.
pub(crate) fn octets(address: std::net::IpAddr) -> Vec<u8> {
    match address {
        std::net::IpAddr::V4(address) => address.octets().to_vec(),
        std::net::IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The address of these octets; none if there are neither four nor sixteen.
pub(crate) fn address(octets: &[u8]) -> Option<std::net::IpAddr> {
    match octets.len() {
        4 => Some(std::net::IpAddr::from(*octets.first_chunk::<4>()?)),
        16 => Some(std::net::IpAddr::from(*octets.first_chunk::<16>()?)),
        _ => None,
    }
}
