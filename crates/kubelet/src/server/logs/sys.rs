//! The one thing that needs unsafe code: a descriptor that is waited for.
#![expect(
    unsafe_code,
    reason = "the registration of a descriptor asks for a promise"
)]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Waits for a descriptor without blocking.
pub(super) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor from here until it is dropped, with the
    // registration.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}
