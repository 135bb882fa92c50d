//! A terminal of the container's own: opened inside, handed to the supervisor, made the controlling one.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::Process;
use rustix::fs::{CWD, Gid, Mode, OFlags, Uid, fchown};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};

use crate::launch::ChildSync;
use crate::step::{During as _, StepError};
use crate::sys;

/// Opens a terminal in the container's own `/dev/pts` and answers with the program's side of it.
pub(super) fn open(process: &Process, sync: &ChildSync) -> Result<OwnedFd, StepError> {
    let step = || "open a terminal".to_owned();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let ours = rustix::fs::open("/dev/pts/ptmx", flags, Mode::empty()).during(step)?;
    unlockpt(&ours).during(step)?;
    let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .during(step)?;
    // Its group is that of all terminals, as the mount of `/dev/pts` says.
    fchown(&theirs, Some(Uid::from_raw(process.uid)), None::<Gid>).during(step)?;
    sys::take_terminal(theirs.as_fd()).during(step)?;
    sync.hand_over_terminal(&ours);
    Ok(theirs)
}

/// The controlling terminal of the first process is the container's console.
pub(super) fn console() -> Result<(), StepError> {
    let step = || "make /dev/console".to_owned();
    let new = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let target = rustix::fs::open("/dev/console", new, Mode::from_raw_mode(0o600)).during(step)?;
    let tree =
        open_tree(CWD, "/dev/pts/0", OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC);
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree.during(step)?.as_fd(), "", target.as_fd(), "", flags).during(step)
}
