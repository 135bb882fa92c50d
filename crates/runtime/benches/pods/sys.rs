//! System calls that no safe crate has.
#![expect(unsafe_code, reason = "raw system calls")]

/// Unshares network and mounts of this process, which must be single-threaded.
pub(crate) fn leave_host() {
    let own = rustix::thread::UnshareFlags::NEWNET | rustix::thread::UnshareFlags::NEWNS;
    // SAFETY: descriptors stay shared (no CLONE_FILES), and nothing of this process is open yet.
    unsafe { rustix::thread::unshare_unsafe(own) }.expect("namespaces need root");
}
