//! The one call that the compiler cannot vouch for.
#![expect(unsafe_code, reason = "unsharing is unsafe in general")]

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives this thread namespaces, or a working directory, of its own. Only for threads that end soon.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only unsharing the table of files is a danger to memory; that is never asked for here.
    Ok(unsafe { unshare_unsafe(flags) }?)
}
