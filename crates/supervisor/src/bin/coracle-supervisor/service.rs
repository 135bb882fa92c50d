//! Daemon setup: detaches from the parent and takes over the listening socket.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::setsid;

/// Leaves the cgroups and the session of the parent, and sets the process name.
pub(crate) fn detach(name: &CStr, cgroups: &[&str]) -> io::Result<()> {
    for file in cgroups {
        fs::write(file, "0")?;
    }

    // EPERM: this process already leads a session.
    setsid().map(drop).or_else(|errno| {
        if errno == Errno::PERM {
            Ok(())
        } else {
            Err(errno)
        }
    })?;

    rustix::thread::set_name(name)?;

    // Without permission the score stays as it is.
    fs::write("/proc/self/oom_score_adj", "-998").unwrap_or_default();

    Ok(())
}

/// Takes the listening socket from standard input, non-blocking.
pub(crate) fn take_listener() -> io::Result<OwnedFd> {
    let listener = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    // Children must not inherit the socket: after an exit, connections must be refused.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::io::ioctl_fionbio(&listener, true)?;
    Ok(listener)
}
