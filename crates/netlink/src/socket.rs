//! A netlink socket, and requests to the kernel through it.
//!
//! The socket is connected to the kernel, so that nothing arrives from other processes. The kernel
//! handles a request before `send` returns; its answers wait in the socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::message::{Answer, Attributes, HEADER, Header, Messages, answers, find, native, text};
use crate::sys;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    #[error("cannot use the netlink socket")]
    Unreachable(#[source] io::Error),
    #[error("cannot enter the pod's network namespace")]
    Namespace(#[source] io::Error),
    #[error("cannot {action}")]
    Refused {
        action: &'static str,
        source: io::Error,
    },
    /// A list changed while it was read, again and again.
    #[error("cannot {action}: it changes too often")]
    Changing { action: &'static str },
}

impl NetlinkError {
    /// The object does not exist.
    pub fn is_absent(&self) -> bool {
        self.is_one_of(&[Errno::NODEV, Errno::NOENT, Errno::SRCH, Errno::ADDRNOTAVAIL])
    }

    /// The object already exists.
    pub fn is_present(&self) -> bool {
        self.is_one_of(&[Errno::EXIST])
    }

    /// There is no route to the destination.
    pub fn is_unreachable(&self) -> bool {
        self.is_one_of(&[Errno::NETUNREACH, Errno::HOSTUNREACH])
    }

    /// The kernel was built without this.
    pub fn is_unsupported(&self) -> bool {
        self.is_one_of(&UNSUPPORTED)
    }

    fn is_one_of(&self, numbers: &[Errno]) -> bool {
        let (NetlinkError::Refused { source, .. } | NetlinkError::Unreachable(source)) = self
        else {
            return false;
        };
        is_one_of(source, numbers)
    }
}

/// What the kernel answers where it lacks a subsystem, an operation or a family.
pub(crate) const UNSUPPORTED: [Errno; 3] =
    [Errno::PROTONOSUPPORT, Errno::OPNOTSUPP, Errno::AFNOSUPPORT];

pub(crate) fn is_one_of(error: &io::Error, numbers: &[Errno]) -> bool {
    let number = error.raw_os_error();
    numbers.iter().any(|one| Some(one.raw_os_error()) == number)
}

/// A request that has an answer.
pub(crate) struct Request<'a> {
    /// For errors: `list routes`.
    pub(crate) action: &'static str,
    pub(crate) kind: u16,
    pub(crate) flags: i32,
    pub(crate) fixed: &'a [u8],
}

/// The kernel's refusal of one message.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Of the message.
    pub(crate) sequence: u32,
    pub(crate) errno: Errno,
    /// What the kernel says about it.
    pub(crate) said: Option<String>,
    /// What part of the message it is about.
    pub(crate) offset: Option<usize>,
}

pub(crate) struct Socket {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// Size of the largest answer.
const MAX_ANSWER: usize = 64 * 1024;
/// How often a list that changes is read again.
const TRIES: usize = 20;
/// From the kernel's headers: an error has attributes; it does not repeat the request's body; the
/// attributes with its text and with the part of the message it is about.
const HAS_ATTRIBUTES: u16 = 0x200;
const CAPPED: u16 = 0x100;
const TEXT: u16 = 1;
const OFFSET: u16 = 2;
/// From the kernel's headers: a list was changed while it was read.
const INTERRUPTED: u16 = 0x10;

impl Socket {
    /// Opens a socket in this thread's namespace. `protocol`: none is rtnetlink.
    pub(crate) fn open(protocol: Option<rustix::net::Protocol>) -> Result<Self, NetlinkError> {
        let socket = connect(protocol).map_err(|error| NetlinkError::Unreachable(error.into()))?;

        // Errors have a text, and do not repeat the request.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            sys::enable(socket.as_fd(), option).map_err(NetlinkError::Unreachable)?;
        }

        Ok(Self {
            socket,
            sequence: 0,
            buffer: vec![0; MAX_ANSWER],
        })
    }

    /// Sends a request and returns the bodies of all answers. A list that changes while it is read
    /// is read again.
    pub(crate) fn ask(
        &mut self,
        request: &Request<'_>,
        fill: impl Fn(&mut Attributes<'_>),
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        for _ in 0..TRIES {
            if let Some(found) = self.ask_once(request, &fill)? {
                return Ok(found);
            }
        }
        Err(NetlinkError::Changing {
            action: request.action,
        })
    }

    /// None: the list changed.
    fn ask_once(
        &mut self,
        request: &Request<'_>,
        fill: impl Fn(&mut Attributes<'_>),
    ) -> Result<Option<Vec<Vec<u8>>>, NetlinkError> {
        let action = request.action;
        let sequence = self.next_sequence();
        let header = Header {
            kind: request.kind,
            flags: request.flags,
            sequence,
        };

        let mut messages = Messages::default();
        messages.add(header, request.fixed, fill);
        self.send(messages.bytes())
            .map_err(|errno| refused(action, errno))?;

        let (mut found, mut is_whole) = (Vec::new(), true);
        loop {
            let length = self
                .receive(RecvFlags::empty())
                .map_err(|errno| refused(action, errno))?;

            for answer in answers(&self.buffer[..length]) {
                if answer.sequence != sequence {
                    continue;
                }
                is_whole &= answer.flags & INTERRUPTED == 0;

                match i32::from(answer.kind) {
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        return match status(answer.body) {
                            None => Ok(is_whole.then_some(found)),
                            Some(Errno::INTR) => Ok(None),
                            Some(errno) => Err(refused(action, errno)),
                        };
                    }
                    _ => found.push(answer.body.to_vec()),
                }
            }
        }
    }

    /// Requests a change, and waits for the acknowledgement.
    pub(crate) fn change(
        &mut self,
        request: &Request<'_>,
        fill: impl Fn(&mut Attributes<'_>),
    ) -> Result<(), NetlinkError> {
        self.ask(request, fill).map(drop)
    }

    /// Sends messages that are not acknowledged, as one datagram; returns what the kernel refused.
    /// Refusals that do not fit into the socket are lost, which is an error only if none is left.
    pub(crate) fn submit(&mut self, messages: &Messages) -> Result<Vec<Refusal>, Errno> {
        self.make_room(messages.bytes().len());
        self.send(messages.bytes())?;

        let (mut refusals, mut lost) = (Vec::new(), false);
        loop {
            match self.receive(RecvFlags::DONTWAIT) {
                Ok(length) => refusals
                    .extend(answers(&self.buffer[..length]).filter_map(|answer| refusal(&answer))),
                Err(Errno::AGAIN) if lost && refusals.is_empty() => return Err(Errno::NOBUFS),
                Err(Errno::AGAIN) => return Ok(refusals),
                Err(Errno::NOBUFS) => lost = true,
                Err(errno) => return Err(errno),
            }
        }
    }

    pub(crate) fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// Reserves consecutive sequence numbers; returns the first.
    pub(crate) fn take_sequences(&mut self, count: u32) -> u32 {
        let first = self.sequence.wrapping_add(1);
        self.sequence = self.sequence.wrapping_add(count);
        first
    }

    /// A datagram must fit into the socket's send buffer. Where the limit may not be exceeded, the
    /// largest allowed buffer is used; `send` fails if that is too small.
    fn make_room(&self, length: usize) {
        let wanted = length + ROOM_OF_SOCKET;
        let has = sockopt::socket_send_buffer_size(&self.socket).unwrap_or(0);
        if has < wanted {
            sockopt::set_socket_send_buffer_size_force(&self.socket, wanted)
                .or_else(|_| sockopt::set_socket_send_buffer_size(&self.socket, wanted))
                .unwrap_or_default();
        }
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Errno> {
        retry_on_intr(|| rustix::net::send(&self.socket, bytes, SendFlags::empty())).map(drop)
    }

    fn receive(&mut self, flags: RecvFlags) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::net::recv(&self.socket, self.buffer.as_mut_slice(), flags))
            .map(|(length, _)| length)
    }
}

/// The kernel's own part of a send buffer.
const ROOM_OF_SOCKET: usize = 4096;

fn connect(protocol: Option<rustix::net::Protocol>) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// Opens a socket that receives the messages of multicast groups of a protocol.
pub(crate) fn listen(protocol: Option<rustix::net::Protocol>, groups: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::NETLINK;
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, protocol)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

fn refused(action: &'static str, errno: Errno) -> NetlinkError {
    NetlinkError::Refused {
        action,
        source: errno.into(),
    }
}

/// The final status of a request: an error number, none if it succeeded.
fn status(body: &[u8]) -> Option<Errno> {
    let code = body
        .first_chunk()
        .map_or(0, |four| i32::from_ne_bytes(*four));
    (code < 0).then(|| Errno::from_raw_os_error(-code))
}

/// A refusal: status, the header of the request, the text.
fn refusal(answer: &Answer<'_>) -> Option<Refusal> {
    if i32::from(answer.kind) != libc::NLMSG_ERROR {
        return None;
    }
    let errno = status(answer.body)?;

    let has_attributes = answer.flags & (HAS_ATTRIBUTES | CAPPED) == HAS_ATTRIBUTES | CAPPED;
    let attributes = answer.body.get(4 + HEADER..).filter(|_| has_attributes);
    let attribute = |kind| attributes.and_then(|attributes| find(attributes, kind));

    let said = attribute(TEXT).map(|said| String::from_utf8_lossy(text(said)).into_owned());
    let offset = attribute(OFFSET).and_then(|offset| usize::try_from(native(offset)).ok());

    Some(Refusal {
        sequence: answer.sequence,
        errno,
        said,
        offset,
    })
}
