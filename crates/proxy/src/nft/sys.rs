//! Registers a descriptor with the reactor.
#![expect(unsafe_code, reason = "registering a descriptor is unsafe in general")]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes a descriptor awaitable for reads.
pub(super) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor from here until it is dropped, with the
    // registration.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}
