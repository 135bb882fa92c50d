//! Tracked UDP connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::netlink;

use crate::message::{NESTED, find};
use crate::socket::{Request, Socket};
use crate::{NetlinkError, Version};

/// A UDP flow.
pub struct Flow {
    pub sent_to: SocketAddr,
    pub answered_by: SocketAddr,
    /// Its original tuple as the kernel encoded it: identifies the flow.
    tuple: Vec<u8>,
}

/// The connections that this namespace tracks.
pub struct Conntrack {
    socket: Socket,
}

const FAMILY_PART: usize = 4;

/// From the kernel's headers: subsystem, messages, attributes.
const SUBSYSTEM: u16 = 1 << 8;
const GET: u16 = SUBSYSTEM | 1;
const DELETE: u16 = SUBSYSTEM | 2;
const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const TUPLE_ADDRESSES: u16 = 1;
const TUPLE_PROTOCOL: u16 = 2;
const PROTOCOL_NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;
/// Source and destination addresses, IPv4 and IPv6.
const SOURCES: [u16; 2] = [1, 3];
const DESTINATIONS: [u16; 2] = [2, 4];
const UDP: u8 = 17;

impl Conntrack {
    /// Opens a socket in this thread's namespace.
    pub fn open() -> Result<Conntrack, NetlinkError> {
        let socket = Socket::open(Some(netlink::NETFILTER))?;
        Ok(Conntrack { socket })
    }

    /// All UDP flows of a version.
    pub fn flows(&mut self, version: Version) -> Result<Vec<Flow>, NetlinkError> {
        let request = Request {
            action: "list flows",
            kind: GET,
            flags: libc::NLM_F_DUMP,
            fixed: &[version.address_family(), 0, 0, 0],
        };
        let found = self.socket.ask(&request, |_| {})?;
        Ok(found.iter().filter_map(|body| flow(body)).collect())
    }

    /// Deletes a flow. Idempotent.
    pub fn delete(&mut self, version: Version, flow: &Flow) -> Result<(), NetlinkError> {
        let request = Request {
            action: "delete a flow",
            kind: DELETE,
            flags: libc::NLM_F_ACK,
            fixed: &[version.address_family(), 0, 0, 0],
        };
        let deleted = self.socket.change(&request, |message| {
            message.put(TUPLE_ORIGINAL | NESTED, &flow.tuple);
        });
        match deleted {
            Err(error) if error.is_absent() => Ok(()),
            done => done,
        }
    }
}

/// A flow, if it is UDP.
fn flow(body: &[u8]) -> Option<Flow> {
    let attributes = body.get(FAMILY_PART..)?;
    let original = find(attributes, TUPLE_ORIGINAL)?;
    let protocol = find(find(original, TUPLE_PROTOCOL)?, PROTOCOL_NUMBER)?;
    if protocol.first() != Some(&UDP) {
        return None;
    }

    let sent_to = end(original, DESTINATIONS, DESTINATION_PORT)?;
    let answered_by = end(find(attributes, TUPLE_REPLY)?, SOURCES, SOURCE_PORT)?;

    Some(Flow {
        sent_to,
        answered_by,
        tuple: original.to_vec(),
    })
}

/// One end of a tuple.
fn end(tuple: &[u8], addresses: [u16; 2], port: u16) -> Option<SocketAddr> {
    let ips = find(tuple, TUPLE_ADDRESSES)?;
    let four = find(ips, addresses[0])
        .and_then(|ip| Some(IpAddr::from(Ipv4Addr::from(*ip.first_chunk::<4>()?))));
    let six = || {
        find(ips, addresses[1])
            .and_then(|ip| Some(IpAddr::from(Ipv6Addr::from(*ip.first_chunk::<16>()?))))
    };

    let port = find(find(tuple, TUPLE_PROTOCOL)?, port)?;
    Some(SocketAddr::new(
        four.or_else(six)?,
        u16::from_be_bytes(*port.first_chunk()?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_flows_are_ignored() {
        assert!(flow(&[0; 3]).is_none());
        assert!(flow(&[0; 40]).is_none());
    }
}
