//! Registers a descriptor with the reactor.
#![expect(
    unsafe_code,
    reason = "the registration of a descriptor asks for a promise"
)]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Makes a descriptor awaitable.
pub(super) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor from here until it is dropped, with the
    // registration.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}
