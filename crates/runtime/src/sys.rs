//! System calls that no safe crate has.
#![expect(unsafe_code, reason = "raw system calls")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::UnshareFlags;
use tokio::io::unix::AsyncFd;

/// Makes a mount read-only.
pub(crate) fn make_readonly(mount: BorrowedFd<'_>) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };

    // SAFETY: the path is an empty C string and `attributes` outlives the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };

    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Unshares namespaces of the calling thread. Only for threads that end soon.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: descriptors stay shared (no CLONE_FILES), so no descriptor changes its meaning.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Brings the loopback interface of the calling thread's network up.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket: OwnedFd = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;

    // SAFETY: all zeroes is a valid `ifreq`, whose name ends in a zero; it outlives both calls.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = libc::c_char::try_from(b'l').unwrap_or_default();
        request.ifr_name[1] = libc::c_char::try_from(b'o').unwrap_or_default();
        request.ifr_ifru.ifru_flags =
            libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };

    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Waits for a descriptor without blocking.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor from here until it is dropped, with the
    // registration.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Waits until the process of a pidfd has ended.
pub(crate) async fn ended(pidfd: OwnedFd) {
    if let Ok(process) = watch(pidfd) {
        process.readable().await.map(drop).unwrap_or_default();
    }
}
