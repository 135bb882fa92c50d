//! Daemon setup: detaches from the parent and takes over the listening socket.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::setsid;

/// Leaves the cgroups and the session of whoever started us, and takes a name.
pub(crate) fn detach(name: &CStr, cgroups: &[&str]) -> io::Result<()> {
    for file in cgroups {
        fs::write(file, "0")?;
    }

    // Whoever started us may be the leader of our session already; then we lead one too.
    setsid().map(drop).or_else(|errno| {
        if errno == Errno::PERM {
            Ok(())
        } else {
            Err(errno)
        }
    })?;

    rustix::thread::set_name(name)?;

    // Where the host does not let us, we are as likely to be killed as others.
    fs::write("/proc/self/oom_score_adj", "-998").unwrap_or_default();

    Ok(())
}

/// The listening socket that is our standard input. Accepting from it does not block.
pub(crate) fn take_listener() -> io::Result<OwnedFd> {
    let listener = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    // No process that we start may hold our socket: when we are gone, nobody is to be reached
    // there.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::io::ioctl_fionbio(&listener, true)?;
    Ok(listener)
}
