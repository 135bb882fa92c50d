//! Unshares the network namespace.
#![expect(unsafe_code, reason = "unsharing is unsafe in general")]

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves this thread, and those it creates later, to a new network namespace.
pub(crate) fn enter_new_network_namespace() {
    // SAFETY: only unsharing the table of files is a danger to memory; a network namespace is none.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
}
