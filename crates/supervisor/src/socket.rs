//! Sends and receives messages with descriptors over a Unix socket.
//!
//! A message that would not fit into a packet (an environment may have megabytes) travels as a
//! memory file.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Maximum number of descriptors of one message, including the memory file.
const MOST_DESCRIPTORS: usize = 5;

/// The size that fits into one packet.
const PACKET: usize = 16 << 10;

/// The longest message: twice the kernel's limit of arguments and environment.
const MOST_BYTES: u64 = 4 << 20;

const INLINE: u8 = 0;
const IN_FILE: u8 = 1;

/// Sends a message. On a socket that does not block, a full queue is `WouldBlock`.
pub fn send(socket: impl AsFd, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let file = if message.len() < PACKET {
        None
    } else {
        Some(memory_file(message)?)
    };

    let mut sent: Vec<BorrowedFd<'_>> = descriptors.to_vec();
    sent.extend(file.as_ref().map(AsFd::as_fd));
    let (kind, inline) = if file.is_some() {
        (IN_FILE, &[][..])
    } else {
        (INLINE, message)
    };

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !sent.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&sent)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }

    let parts = [
        IoSlice::new(std::slice::from_ref(&kind)),
        IoSlice::new(inline),
    ];

    rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(&socket, &parts, &mut ancillary, SendFlags::NOSIGNAL)
    })?;

    Ok(())
}

/// Receives a message; none when the connection is closed.
pub fn receive(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    // Allocates only what is needed: a supervisor waits for months, and memory it touched once is
    // not returned.
    let peek = RecvFlags::PEEK | RecvFlags::TRUNC;
    let nowhere: &mut [u8] = &mut [];
    let (_, length) =
        rustix::io::retry_on_intr(|| rustix::net::recv(&socket, &mut *nowhere, peek))?;
    let mut packet = vec![0; length.clamp(1, PACKET + 1)];

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut packet)];
        rustix::net::recvmsg(&socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;

    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }

    if got.bytes == 0 {
        return Ok(None);
    }

    if got
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }

    packet.truncate(got.bytes);
    let kind = packet.remove(0);
    if kind != IN_FILE {
        return Ok(Some((packet, descriptors)));
    }

    let file = descriptors.pop().ok_or(io::ErrorKind::InvalidData)?;
    let mut message = Vec::new();
    File::from(file)
        .take(MOST_BYTES)
        .read_to_end(&mut message)?;

    Ok(Some((message, descriptors)))
}

fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("message", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn messages_arrive_whole_with_their_descriptors() {
        let (here, there) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();

        for length in [0, 1, PACKET - 1, PACKET, 1 << 20] {
            let message = vec![7; length];
            send(&here, &message, &[here.as_fd(), there.as_fd()]).unwrap();
            let (got, descriptors) = receive(&there).unwrap().unwrap();
            assert!(got == message, "{length} bytes");
            assert_eq!(descriptors.len(), 2, "{length} bytes");
        }

        drop(here);
        assert!(receive(&there).unwrap().is_none());
    }
}
