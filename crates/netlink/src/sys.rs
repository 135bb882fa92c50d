//! Socket options of netlink, and the reactor's registration.
#![expect(
    unsafe_code,
    reason = "options that rustix does not know are set with a raw call; registering a descriptor is unsafe in general"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Enables an option of the level `SOL_NETLINK`.
pub(crate) fn enable(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<()> {
    let value: libc::c_int = 1;
    let length = libc::socklen_t::try_from(size_of_val(&value)).expect("an integer is short");

    // SAFETY: the descriptor is open while it is borrowed; the kernel reads `length` bytes of
    // `value`, which lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_NETLINK,
            option,
            (&raw const value).cast(),
            length,
        )
    };

    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a descriptor awaitable for reads.
pub(crate) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor from here until it is dropped, with the
    // registration.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}
