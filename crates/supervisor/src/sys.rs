//! System calls that no safe crate has.
#![expect(unsafe_code, reason = "raw system calls")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The wait status of a reaped process; none if the kernel does not report it.
pub(crate) fn exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    /// `struct pidfd_info` in its first size.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }

    const EXIT: u64 = 1 << 3;
    /// `_IOWR(0xFF, 11, struct pidfd_info)`
    const GET_INFO: libc::Ioctl = 0xC000_FF0B | (size_of::<Info>() as libc::Ioctl) << 16;

    let mut info = Info {
        mask: EXIT,
        ..Info::default()
    };

    // SAFETY: the number of the request tells the kernel the size of `info`, which outlives the
    // call.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO, &raw mut info) };

    (done == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}
