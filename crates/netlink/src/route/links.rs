//! Links: bridges and veth pairs.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::Connection;
use crate::message::{NESTED, find, native, text};
use crate::{NetlinkError, Version};

/// A hardware address.
pub type Mac = [u8; 6];

/// The pod's end of a veth pair.
pub struct Peer<'a> {
    pub name: &'a str,
    pub mac: Mac,
    pub namespace: &'a File,
}

/// A VXLAN interface without learning: it sends only where a [`Tunnel`](super::Tunnel) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vxlan {
    pub mac: Mac,
    /// The VXLAN network identifier under which it receives.
    pub identifier: u32,
    /// The UDP port of all machines.
    pub port: u16,
}

/// What an interface is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    pub mtu: u32,
    pub is_up: bool,
    /// Whether the others of its segment are found by their hardware addresses, as on Ethernet.
    pub is_broadcast: bool,
    /// If it is a VXLAN interface as those made here.
    pub vxlan: Option<Vxlan>,
}

/// `VETH_INFO_PEER`, `IFLA_BRPORT_MODE` and `IFLA_VXLAN_*` of the kernel's headers.
const VETH_INFO_PEER: u16 = 1;
const BRPORT_MODE: u16 = 4;
const VXLAN_ID: u16 = 1;
const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT: u16 = 15;
const VXLAN_LOCAL6: u16 = 17;

/// The kernel's limit of interface names.
pub const MAX_NAME: usize = 15;

impl Connection {
    /// The index of an interface, if it exists.
    pub fn link(&mut self, name: &str) -> Result<Option<u32>, NetlinkError> {
        let found = self.ask(
            "look up an interface",
            (libc::RTM_GETLINK, libc::NLM_F_ACK),
            &fixed_part(0, 0, 0),
            |message| message.text(libc::IFLA_IFNAME, name),
        );
        match found {
            Ok(found) => Ok(found.first().and_then(|body| body.get(4..)).map(native)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The MTU of an interface.
    pub fn mtu(&mut self, index: u32) -> Result<Option<u32>, NetlinkError> {
        let found = self.ask(
            "look up an interface",
            (libc::RTM_GETLINK, libc::NLM_F_ACK),
            &fixed_part(0, index, 0),
            |_| {},
        )?;
        let mtu = found
            .first()
            .and_then(|body| find(body.get(FIXED..)?, libc::IFLA_MTU));
        Ok(mtu.map(native))
    }

    /// An interface, if it exists.
    pub fn describe(&mut self, index: u32) -> Result<Option<Link>, NetlinkError> {
        let found = self.ask(
            "look up an interface",
            (libc::RTM_GETLINK, libc::NLM_F_ACK),
            &fixed_part(0, index, 0),
            |_| {},
        );
        match found {
            Ok(found) => Ok(found.first().and_then(|body| read(body))),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a VXLAN interface, which is down. It reaches other machines by their addresses of
    /// this version.
    pub fn add_vxlan(
        &mut self,
        name: &str,
        version: Version,
        mtu: u32,
        vxlan: &Vxlan,
    ) -> Result<(), NetlinkError> {
        self.change(
            "create the VXLAN interface",
            (libc::RTM_NEWLINK, MAKE),
            &fixed_part(0, 0, 0),
            |message| {
                message.text(libc::IFLA_IFNAME, name);
                message.put(libc::IFLA_ADDRESS, &vxlan.mac);
                message.native(libc::IFLA_MTU, mtu);
                message.nested_after(libc::IFLA_LINKINFO, &[], |info| {
                    info.text(libc::IFLA_INFO_KIND, "vxlan");
                    info.nested_after(libc::IFLA_INFO_DATA, &[], |data| {
                        data.native(VXLAN_ID, vxlan.identifier);
                        data.put(VXLAN_LEARNING, &[0]);
                        data.put(VXLAN_PORT, &vxlan.port.to_be_bytes());
                        // The unspecified address: it only says that the version is 6.
                        if version == Version::V6 {
                            data.put(VXLAN_LOCAL6, &[0; 16]);
                        }
                    });
                });
            },
        )
    }

    pub fn add_bridge(&mut self, name: &str, mac: Mac, mtu: u32) -> Result<(), NetlinkError> {
        self.change(
            "create the bridge",
            (libc::RTM_NEWLINK, MAKE),
            &fixed_part(0, 0, 0),
            |message| {
                message.text(libc::IFLA_IFNAME, name);
                message.put(libc::IFLA_ADDRESS, &mac);
                message.native(libc::IFLA_MTU, mtu);
                message.nested_after(libc::IFLA_LINKINFO, &[], |info| {
                    info.text(libc::IFLA_INFO_KIND, "bridge");
                });
            },
        )
    }

    /// Creates a veth pair: one end is a bridge port and up, the other is in the pod's namespace
    /// and down, as it cannot be created up.
    pub fn add_pair(
        &mut self,
        name: &str,
        bridge: u32,
        mtu: u32,
        peer: &Peer<'_>,
    ) -> Result<(), NetlinkError> {
        let namespace = u32::try_from(peer.namespace.as_raw_fd())
            .expect("an open file's number is not negative");

        self.change(
            "create the pod's interface",
            (libc::RTM_NEWLINK, MAKE),
            &fixed_part(0, 0, UP),
            |message| {
                message.text(libc::IFLA_IFNAME, name);
                message.native(libc::IFLA_MTU, mtu);
                message.native(libc::IFLA_MASTER, bridge);
                message.nested_after(libc::IFLA_LINKINFO, &[], |info| {
                    info.text(libc::IFLA_INFO_KIND, "veth");
                    info.nested_after(libc::IFLA_INFO_DATA, &[], |data| {
                        data.nested_after(VETH_INFO_PEER, &fixed_part(0, 0, 0), |end| {
                            end.text(libc::IFLA_IFNAME, peer.name);
                            end.put(libc::IFLA_ADDRESS, &peer.mac);
                            end.native(libc::IFLA_MTU, mtu);
                            end.native(libc::IFLA_NET_NS_FD, namespace);
                        });
                    });
                });
            },
        )
    }

    pub fn set_down(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut fixed = fixed_part(0, index, UP);
        fixed[8..12].copy_from_slice(&0_u32.to_ne_bytes());
        self.change(
            "set an interface down",
            (libc::RTM_NEWLINK, libc::NLM_F_ACK),
            &fixed,
            |_| {},
        )
    }

    pub fn set_up(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.change(
            "set an interface up",
            (libc::RTM_NEWLINK, libc::NLM_F_ACK),
            &fixed_part(0, index, UP),
            |_| {},
        )
    }

    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        self.change(
            "set the MTU of an interface",
            (libc::RTM_NEWLINK, libc::NLM_F_ACK),
            &fixed_part(0, index, 0),
            |message| message.native(libc::IFLA_MTU, mtu),
        )
    }

    /// Enables hairpin mode, so that a pod reaches itself through its Service.
    pub fn set_hairpin(&mut self, index: u32) -> Result<(), NetlinkError> {
        let family =
            u8::try_from(libc::AF_BRIDGE).expect("families of addresses are small numbers");
        self.change(
            "set hairpin mode",
            (libc::RTM_SETLINK, libc::NLM_F_ACK),
            &fixed_part(family, index, 0),
            |message| {
                message.nested_after(libc::IFLA_PROTINFO | NESTED, &[], |port| {
                    port.put(BRPORT_MODE, &[1]);
                });
            },
        )
    }

    /// Deletes an interface, with its peer. Idempotent.
    pub fn delete_link(&mut self, name: &str) -> Result<(), NetlinkError> {
        let deleted = self.change(
            "delete an interface",
            (libc::RTM_DELLINK, libc::NLM_F_ACK),
            &fixed_part(0, 0, 0),
            |message| message.text(libc::IFLA_IFNAME, name),
        );
        match deleted {
            Err(error) if error.is_absent() => Ok(()),
            done => done,
        }
    }
}

const MAKE: i32 = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
const UP: u32 = 1;
const FIXED: usize = 16;

/// The fixed part of link messages: family, hardware type, index, flags and their mask.
fn fixed_part(family: u8, index: u32, up: u32) -> [u8; FIXED] {
    let mut bytes = [0; FIXED];
    bytes[0] = family;
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&up.to_ne_bytes());
    bytes[12..16].copy_from_slice(&up.to_ne_bytes());
    bytes
}

/// `IFF_BROADCAST`, `IFF_NOARP` and `IFF_POINTOPOINT` of the kernel's headers.
const BROADCAST: u32 = 0x2;
const POINT_TO_POINT: u32 = 0x10;
const NO_ARP: u32 = 0x80;

fn read(body: &[u8]) -> Option<Link> {
    let (fixed, rest) = body.split_at_checked(FIXED)?;
    let flags = native(&fixed[8..]);

    Some(Link {
        index: native(&fixed[4..]),
        name: String::from_utf8_lossy(text(find(rest, libc::IFLA_IFNAME)?)).into_owned(),
        mtu: native(find(rest, libc::IFLA_MTU)?),
        is_up: flags & UP != 0,
        is_broadcast: flags & (BROADCAST | POINT_TO_POINT | NO_ARP) == BROADCAST,
        vxlan: read_vxlan(rest),
    })
}

fn read_vxlan(attributes: &[u8]) -> Option<Vxlan> {
    let info = find(attributes, libc::IFLA_LINKINFO)?;
    let data = find(info, libc::IFLA_INFO_DATA)?;
    if find(info, libc::IFLA_INFO_KIND).map(text) != Some(b"vxlan")
        || find(data, VXLAN_LEARNING) != Some(&[0])
    {
        return None;
    }

    Some(Vxlan {
        mac: find(attributes, libc::IFLA_ADDRESS)?.try_into().ok()?,
        identifier: native(find(data, VXLAN_ID)?),
        port: u16::from_be_bytes(find(data, VXLAN_PORT)?.try_into().ok()?),
    })
}

/// Whether the kernel accepts this interface name.
pub fn is_name(name: &str) -> io::Result<()> {
    let good = !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if good {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}
