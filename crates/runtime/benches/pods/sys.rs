//! System calls that no safe crate has.
#![expect(unsafe_code, reason = "raw system calls")]

/// Gives this process a network and mounts of its own, as long as it has one thread.
pub(crate) fn leave_host() {
    let own = rustix::thread::UnshareFlags::NEWNET | rustix::thread::UnshareFlags::NEWNS;
    // SAFETY: descriptors stay shared (no CLONE_FILES), and nothing of this process is open yet.
    unsafe { rustix::thread::unshare_unsafe(own) }.expect("namespaces need root");
}
