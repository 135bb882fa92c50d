//! Registers a descriptor with the reactor.
#![expect(
    unsafe_code,
    reason = "the reactor trusts that a descriptor stays what it is"
)]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Makes a descriptor awaitable.
pub(super) fn waitable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open and the same until it is dropped, which is after it has
    // left the reactor.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}
