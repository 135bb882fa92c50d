//! Links: bridges and veth pairs.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

use super::message::{Message, attributes, number};
use super::{Connection, NetlinkError};

/// A hardware address.
pub(crate) type Mac = [u8; 6];

/// The pod's end of a veth pair.
pub(crate) struct Peer<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
    pub(crate) namespace: &'a File,
}

/// `VETH_INFO_PEER` and `IFLA_BRPORT_MODE` of the kernel's headers.
const VETH_INFO_PEER: u16 = 1;
const BRPORT_MODE: u16 = 4;
/// Marks a nested attribute.
const NESTED: u16 = 0x8000;

/// The kernel's limit of interface names.
pub(crate) const MAX_NAME: usize = 15;

impl Connection {
    /// The index of an interface, if it exists.
    pub(crate) fn link(&mut self, name: &str) -> Result<Option<u32>, NetlinkError> {
        let message = Message::new(
            libc::RTM_GETLINK,
            flags(libc::NLM_F_ACK),
            &fixed_part(0, 0, 0),
        )
        .with_text(libc::IFLA_IFNAME, name);
        match self.ask("look up an interface", message) {
            Ok(found) => Ok(found.first().map(|body| number(&body[4..]))),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The MTU of an interface.
    pub(crate) fn mtu(&mut self, index: u32) -> Result<Option<u32>, NetlinkError> {
        let message = Message::new(
            libc::RTM_GETLINK,
            flags(libc::NLM_F_ACK),
            &fixed_part(0, index, 0),
        );
        let found = self.ask("look up an interface", message)?;
        let body = found.first().map_or(&[][..], Vec::as_slice);
        let mtu =
            attributes(body.get(FIXED..).unwrap_or(&[])).find(|(kind, _)| *kind == libc::IFLA_MTU);
        Ok(mtu.map(|(_, value)| number(value)))
    }

    pub(crate) fn add_bridge(
        &mut self,
        name: &str,
        mac: Mac,
        mtu: u32,
    ) -> Result<(), NetlinkError> {
        let message = Message::new(libc::RTM_NEWLINK, flags(MAKE), &fixed_part(0, 0, 0))
            .with_text(libc::IFLA_IFNAME, name)
            .with(libc::IFLA_ADDRESS, &mac)
            .with_number(libc::IFLA_MTU, mtu)
            .with_nested(libc::IFLA_LINKINFO, &[], |info| {
                info.with_text(libc::IFLA_INFO_KIND, "bridge")
            });
        self.change("create the bridge", message)
    }

    /// Creates a veth pair: one end is a bridge port and up, the other is in the pod's namespace
    /// and down, as it cannot be created up.
    pub(crate) fn add_pair(
        &mut self,
        name: &str,
        bridge: u32,
        mtu: u32,
        peer: &Peer<'_>,
    ) -> Result<(), NetlinkError> {
        let namespace = u32::try_from(peer.namespace.as_raw_fd())
            .expect("an open file's number is not negative");
        let message = Message::new(libc::RTM_NEWLINK, flags(MAKE), &fixed_part(0, 0, UP))
            .with_text(libc::IFLA_IFNAME, name)
            .with_number(libc::IFLA_MTU, mtu)
            .with_number(libc::IFLA_MASTER, bridge)
            .with_nested(libc::IFLA_LINKINFO, &[], |info| {
                info.with_text(libc::IFLA_INFO_KIND, "veth").with_nested(
                    libc::IFLA_INFO_DATA,
                    &[],
                    |data| {
                        data.with_nested(VETH_INFO_PEER, &fixed_part(0, 0, 0), |end| {
                            end.with_text(libc::IFLA_IFNAME, peer.name)
                                .with(libc::IFLA_ADDRESS, &peer.mac)
                                .with_number(libc::IFLA_MTU, mtu)
                                .with_number(libc::IFLA_NET_NS_FD, namespace)
                        })
                    },
                )
            });

        self.change("create the pod's interface", message)
    }

    pub(crate) fn set_up(&mut self, index: u32) -> Result<(), NetlinkError> {
        let message = Message::new(
            libc::RTM_NEWLINK,
            flags(libc::NLM_F_ACK),
            &fixed_part(0, index, UP),
        );
        self.change("set an interface up", message)
    }

    pub(crate) fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        let message = Message::new(
            libc::RTM_NEWLINK,
            flags(libc::NLM_F_ACK),
            &fixed_part(0, index, 0),
        )
        .with_number(libc::IFLA_MTU, mtu);
        self.change("set the MTU of an interface", message)
    }

    /// Enables hairpin mode, so that a pod reaches itself through its Service.
    pub(crate) fn set_hairpin(&mut self, index: u32) -> Result<(), NetlinkError> {
        let family =
            u8::try_from(libc::AF_BRIDGE).expect("families of addresses are small numbers");
        let message = Message::new(
            libc::RTM_SETLINK,
            flags(libc::NLM_F_ACK),
            &fixed_part(family, index, 0),
        )
        .with_nested(libc::IFLA_PROTINFO | NESTED, &[], |port| {
            port.with(BRPORT_MODE, &[1])
        });
        self.change("set hairpin mode", message)
    }

    /// Deletes an interface, with its peer. Idempotent.
    pub(crate) fn delete_link(&mut self, name: &str) -> Result<(), NetlinkError> {
        let message = Message::new(
            libc::RTM_DELLINK,
            flags(libc::NLM_F_ACK),
            &fixed_part(0, 0, 0),
        )
        .with_text(libc::IFLA_IFNAME, name);
        match self.change("delete an interface", message) {
            Err(error) if error.is_absent() => Ok(()),
            done => done,
        }
    }
}

const MAKE: i32 = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
const UP: u32 = 1;
const FIXED: usize = 16;

/// The flags of a request.
pub(super) fn flags(of: i32) -> u16 {
    u16::try_from(libc::NLM_F_REQUEST | of).expect("the flags of messages have 16 bits")
}

/// The fixed part of link messages: family, hardware type, index, flags and their mask.
fn fixed_part(family: u8, index: u32, up: u32) -> [u8; FIXED] {
    let mut bytes = [0; FIXED];
    bytes[0] = family;
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&up.to_ne_bytes());
    bytes[12..16].copy_from_slice(&up.to_ne_bytes());
    bytes
}

/// Whether the kernel accepts this interface name.
pub(crate) fn is_name(name: &str) -> Result<(), Errno> {
    let good = !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if good { Ok(()) } else { Err(Errno::INVAL) }
}
