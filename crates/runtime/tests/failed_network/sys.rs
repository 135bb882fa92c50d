//! Unshares namespaces, which needs unsafe code.
#![expect(unsafe_code, reason = "unsharing is unsafe in general")]

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Puts this thread, and those that it makes later, into a network namespace of its own.
pub(crate) fn unshare_network() {
    // SAFETY: only unsharing the table of files is a danger to memory; a network namespace is none.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
}
