//! The terminal of a container: opened in its `/dev/pts`, passed to the supervisor, made the
//! controlling terminal.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::Process;
use rustix::fs::{
    CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, fchown, fstat, fstatfs, makedev, openat2,
};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};

use super::filesystems::{DEV, NewFilesystems, PTS};
use crate::launch::ChildSync;
use crate::step::{During as _, StepError};
use crate::sys;

/// Opens a terminal in the container's own `/dev/pts` and returns the program's side.
pub(super) fn open(
    process: &Process,
    filesystems: &NewFilesystems<'_>,
    sync: &ChildSync,
) -> Result<OwnedFd, StepError> {
    let step = || "open a terminal".to_owned();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let ours = match filesystems.open(PTS, "ptmx", flags) {
        Some(opened) => opened,
        // A running container, or a volume at `/dev`, may have anything there.
        None => openat2(
            CWD,
            "/dev/pts/ptmx",
            flags,
            Mode::empty(),
            ResolveFlags::NO_MAGICLINKS,
        ),
    };

    let ours = ours.and_then(checked).during(step)?;
    unlockpt(&ours).during(step)?;

    let theirs = ioctl_tiocgptpeer(
        &ours,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )
    .during(step)?;

    // The group is set by the mount options of `/dev/pts`.
    fchown(&theirs, Some(Uid::from_raw(process.uid)), None::<Gid>).during(step)?;

    sys::take_terminal(theirs.as_fd()).during(step)?;
    sync.hand_over_terminal(&ours);

    Ok(theirs)
}

/// Verifies that a file is a ptmx device of devpts.
fn checked(file: OwnedFd) -> rustix::io::Result<OwnedFd> {
    let about = fstat(&file)?;
    let makes_terminals = FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice
        && about.st_rdev == makedev(5, 2)
        && fstatfs(&file)?.f_type == libc::DEVPTS_SUPER_MAGIC;
    if makes_terminals {
        Ok(file)
    } else {
        Err(Errno::NOTTY)
    }
}

/// Mounts the terminal of the first process at `/dev/console`. A volume at `/dev` need not have
/// that file, and none is created there.
pub(super) fn console(
    terminal: &OwnedFd,
    filesystems: &NewFilesystems<'_>,
) -> Result<(), StepError> {
    let step = || "mount /dev/console".to_owned();
    let place = match filesystems.open(DEV, "console", OFlags::PATH) {
        Some(place) => place,
        None => {
            let how = ResolveFlags::NO_SYMLINKS;
            match openat2(
                CWD,
                "/dev/console",
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
                how,
            ) {
                Err(_) => return Ok(()),
                found => found,
            }
        }
    };

    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(terminal, "", flags | OpenTreeFlags::AT_EMPTY_PATH).during(step)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;

    move_mount(tree.as_fd(), "", place.during(step)?, "", flags).during(step)
}
