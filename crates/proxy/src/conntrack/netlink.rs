//! Conntrack over netlink.
//!
//! A message is a header of 16 bytes, four bytes with the family, and attributes: length, type,
//! payload, padded to four bytes; tuples are nested. The header is in native byte order, ports and
//! addresses in network order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::rules::Family;

/// Why conntrack could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ConntrackError {
    #[error("cannot use the conntrack netlink socket")]
    Unreachable(#[source] std::io::Error),
    #[error("cannot {action}")]
    Refused {
        action: &'static str,
        source: std::io::Error,
    },
}

/// A UDP flow.
pub(super) struct Flow {
    pub(super) sent_to: SocketAddr,
    pub(super) answered_by: SocketAddr,
    /// Its original tuple as the kernel encoded it: identifies the flow.
    tuple: Vec<u8>,
}

pub(super) struct Connection {
    socket: OwnedFd,
    sequence: u32,
}

/// Size of the largest response.
const MAX_RESPONSE: usize = 64 * 1024;
const HEADER: usize = 16;
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
/// Flags and mask of attribute types.
const NESTED: u16 = 0x8000;
const KIND: u16 = 0x3fff;
const UDP: u8 = 17;

impl Connection {
    /// Opens a socket in this thread's namespace.
    pub(super) fn open() -> Result<Connection, ConntrackError> {
        let unreachable = |errno: Errno| ConntrackError::Unreachable(errno.into());
        let (family, protocol) = (AddressFamily::NETLINK, Some(netlink::NETFILTER));
        let socket =
            rustix::net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol);
        let socket = socket.map_err(unreachable)?;
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, 0)).map_err(unreachable)?;
        Ok(Connection {
            socket,
            sequence: 0,
        })
    }

    /// All UDP flows of a family.
    pub(super) fn flows(&mut self, family: Family) -> Result<Vec<Flow>, ConntrackError> {
        let mut flows = Vec::new();
        self.request("list flows", GET, libc::NLM_F_DUMP, family, &[], |body| {
            flows.extend(flow(body))
        })?;
        Ok(flows)
    }

    /// Deletes a flow. Idempotent.
    pub(super) fn delete(&mut self, family: Family, flow: &Flow) -> Result<(), ConntrackError> {
        let mut attribute = Vec::with_capacity(flow.tuple.len() + 4);
        let length =
            u16::try_from(flow.tuple.len() + 4).expect("the kernel wrote it into 16 bits itself");
        attribute.extend_from_slice(&length.to_ne_bytes());
        attribute.extend_from_slice(&(TUPLE_ORIGINAL | NESTED).to_ne_bytes());
        attribute.extend_from_slice(&flow.tuple);

        match self.request(
            "delete a flow",
            DELETE,
            libc::NLM_F_ACK,
            family,
            &attribute,
            |_| {},
        ) {
            Err(ConntrackError::Refused { source, .. })
                if source.raw_os_error() == Some(Errno::NOENT.raw_os_error()) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    fn request(
        &mut self,
        action: &'static str,
        kind: u16,
        flags: i32,
        family: Family,
        attributes: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), ConntrackError> {
        self.sequence = self.sequence.wrapping_add(1);
        let refused = |errno: Errno| ConntrackError::Refused {
            action,
            source: errno.into(),
        };

        let request = request(kind, flags, self.sequence, family, attributes);
        rustix::net::send(&self.socket, &request, SendFlags::empty()).map_err(refused)?;

        let mut buffer = vec![0; MAX_RESPONSE];
        loop {
            let (length, _) =
                rustix::net::recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())
                    .map_err(refused)?;
            for (kind, sequence, body) in messages(&buffer[..length]) {
                if sequence != self.sequence {
                    continue;
                }

                match i32::from(kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => {
                        let code = body
                            .first_chunk()
                            .map_or(0, |four| i32::from_ne_bytes(*four));
                        return if code == 0 {
                            Ok(())
                        } else {
                            Err(refused(Errno::from_raw_os_error(-code)))
                        };
                    }
                    _ => each(body),
                }
            }
        }
    }
}

fn request(kind: u16, flags: i32, sequence: u32, family: Family, attributes: &[u8]) -> Vec<u8> {
    let length =
        u32::try_from(HEADER + FAMILY_PART + attributes.len()).expect("requests are short");
    let flags =
        u16::try_from(libc::NLM_F_REQUEST | flags).expect("the flags of messages have 16 bits");
    let family = match family {
        Family::V4 => libc::AF_INET,
        Family::V6 => libc::AF_INET6,
    };

    let mut bytes = Vec::with_capacity(HEADER + FAMILY_PART + attributes.len());
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.push(u8::try_from(family).expect("families of addresses are small numbers"));
    bytes.extend_from_slice(&[0; 3]);
    bytes.extend_from_slice(attributes);

    bytes
}

/// The messages of one read: type, sequence, body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
        let message = bytes
            .get(..length)
            .filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        let kind = u16::from_ne_bytes([message[4], message[5]]);
        let sequence = u32::from_ne_bytes(*message[8..].first_chunk()?);
        Some((kind, sequence, &message[HEADER..]))
    })
}

/// The attributes after a fixed part.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let payload = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind & KIND, payload))
    })
}

fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, payload)| payload)
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
    fn truncated_messages_are_ignored() {
        let whole = request(GET, 0, 7, Family::V4, &[8, 0, 1, 0, 1, 2, 3, 4]);
        let (kind, sequence, body) = messages(&whole).next().unwrap();
        assert_eq!((kind, sequence), (GET, 7));
        assert_eq!(find(&body[FAMILY_PART..], 1), Some([1, 2, 3, 4].as_slice()));
        assert_eq!(messages(&whole[..whole.len() - 1]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0, 5]).count(), 0);
        assert!(flow(&[0; 3]).is_none());
    }
}
