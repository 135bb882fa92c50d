//! Wrappers for system calls that no safe crate has. All take and return safe types.
#![expect(unsafe_code, reason = "raw system calls")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::Errno;

/// The result of a clone, in the child or in the parent.
pub(crate) enum Cloned {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// Clones this process, which must be single-threaded, so that the child may run any code.
pub(crate) fn clone3(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;

    // SAFETY: all zeroes is the documented empty value of `clone_args`.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = namespaces | u64::from(libc::CLONE_PIDFD.cast_unsigned());
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());

    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }

    // SAFETY: no memory is shared with the child (no CLONE_VM), no stack is given, and `args` and
    // `pidfd` outlive the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            size_of::<libc::clone_args>(),
        )
    };

    match i32::try_from(pid).expect("a pid, 0 or -1") {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        pid => Ok(Cloned::Parent {
            pid,
            // SAFETY: the kernel has just given us this descriptor, and it has no other owner.
            pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) },
        }),
    }
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Sets attributes and propagation of a mount, with all below it if `recursive`.
pub(crate) fn mount_setattr(
    mount: BorrowedFd<'_>,
    set: u64,
    propagation: u64,
    recursive: bool,
) -> rustix::io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation,
        userns_fd: 0,
    };

    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };

    // SAFETY: the path is an empty C string and `attributes` outlives the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };

    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Blocks all signals and returns a descriptor on which SIGCHLD and SIGTERM are read.
pub(crate) fn take_signals() -> io::Result<OwnedFd> {
    // SAFETY: a `sigset_t` is plain data that the calls fill; the descriptor is new and ours.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        let mut wanted: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut wanted);
        libc::sigaddset(&raw mut wanted, libc::SIGCHLD);
        libc::sigaddset(&raw mut wanted, libc::SIGTERM);
        libc::sigaddset(&raw mut wanted, libc::SIGINT);

        match libc::signalfd(
            -1,
            &raw const wanted,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// The number of the next signal on a descriptor of [`take_signals`]; none when no more wait.
pub(crate) fn next_signal(signals: BorrowedFd<'_>) -> Option<u32> {
    let mut signal = [0u8; size_of::<libc::signalfd_siginfo>()];
    let got = rustix::io::retry_on_intr(|| rustix::io::read(signals, &mut signal)).ok()?;
    let number: [u8; 4] = signal.get(..4)?.try_into().ok()?;
    (got == signal.len()).then_some(u32::from_ne_bytes(number))
}

/// Resets the signal mask and dispositions to their defaults.
pub(crate) fn reset_signals() {
    // SAFETY: setting a default disposition and an empty mask installs no handler; the kernel
    // refuses what cannot be set.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Loads a seccomp program: instructions of eight bytes, as the kernel takes them.
pub(crate) fn load_seccomp(program: &[u8]) -> rustix::io::Result<()> {
    let (instructions, rest) = program.as_chunks::<8>();
    let length = u16::try_from(instructions.len()).map_err(|_| Errno::INVAL)?;

    if !rest.is_empty() {
        return Err(Errno::INVAL);
    }

    let mut filter: Vec<libc::sock_filter> = instructions
        .iter()
        .map(|&[c0, c1, jt, jf, k0, k1, k2, k3]| libc::sock_filter {
            code: u16::from_ne_bytes([c0, c1]),
            jt,
            jf,
            k: u32::from_ne_bytes([k0, k1, k2, k3]),
        })
        .collect();

    let program = libc::sock_fprog {
        len: length,
        filter: filter.as_mut_ptr(),
    };

    // SAFETY: `program` points to `length` instructions that live until the call is over; the
    // kernel checks them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };

    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Execs a program. Returns only on failure.
pub(crate) fn execve(path: &str, args: &[String], env: &[String]) -> Errno {
    let terminated = |texts: &[String]| {
        texts
            .iter()
            .map(|text| CString::new(text.as_str()))
            .collect::<Result<Vec<_>, _>>()
    };

    let (Ok(path), Ok(args), Ok(env)) = (CString::new(path), terminated(args), terminated(env))
    else {
        return Errno::INVAL;
    };

    let pointers = |texts: &[CString]| {
        texts
            .iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect::<Vec<_>>()
    };
    let (args_list, env_list) = (pointers(&args), pointers(&env));

    // SAFETY: all strings end in a zero, both lists in a null pointer, and they live until the call
    // is over.
    unsafe { libc::execve(path.as_ptr(), args_list.as_ptr(), env_list.as_ptr()) };

    last_errno()
}

/// Exits at once, without running destructors or exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any number and does not return.
    unsafe { libc::_exit(code) }
}

/// Makes a terminal the controlling one of this session.
pub(crate) fn take_terminal(terminal: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // SAFETY: TIOCSCTTY takes a plain number.
    let done = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Closes every descriptor but the standard streams and this one, which the next exec closes.
pub(crate) fn close_others(kept: &OwnedFd) -> rustix::io::Result<()> {
    let kept = kept.as_raw_fd().cast_unsigned();
    close_range(3, kept.saturating_sub(1), 0)?;
    close_range(kept, kept, libc::CLOSE_RANGE_CLOEXEC)?;
    close_range(kept.saturating_add(1), libc::c_uint::MAX, 0)
}

fn close_range(
    first: libc::c_uint,
    last: libc::c_uint,
    flags: libc::c_uint,
) -> rustix::io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: the owners of these descriptors do not use them before the exec or exit.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Unshares namespaces.
pub(crate) fn unshare(flags: rustix::thread::UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: this process has one thread, and descriptors are not unshared.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Sets a resource limit, soft and hard.
pub(crate) fn set_limit(resource: u32, soft: u64, hard: u64) -> rustix::io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: `limit` outlives the call; an unknown resource is refused.
    let done = unsafe { libc::setrlimit(resource, &raw const limit) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// A resource limit, soft and hard.
pub(crate) fn limit(resource: u32) -> rustix::io::Result<(u64, u64)> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` outlives the call and is plain data; an unknown resource is refused.
    let done = unsafe { libc::getrlimit(resource, &raw mut limit) };
    if done == 0 {
        Ok((limit.rlim_cur, limit.rlim_max))
    } else {
        Err(last_errno())
    }
}
