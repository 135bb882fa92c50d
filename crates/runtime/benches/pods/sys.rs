//! System calls that no safe crate has.
#![expect(unsafe_code, reason = "raw system calls")]

/// Gives this process a network of its own, as long as it has one thread.
pub(crate) fn leave_network() {
    // SAFETY: descriptors stay shared (no CLONE_FILES), and nothing of this process is open yet.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
        .expect("a network namespace needs root");
}
