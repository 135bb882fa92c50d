//! The null device. It is verified before use, and the host's is never exposed where a container
//! could change its owner or mode.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::Filesystem;
use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fstat, makedev, mknodat, openat, openat2,
};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};

use super::filesystems::{DEV, NewFilesystems};
use super::mounts::new_mount;
use crate::sys;

const NAME: &str = "null";

/// A mount of the null device, to cover a file with.
pub(super) fn cover(filesystems: &NewFilesystems<'_>) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if let Some(Ok(null)) = filesystems.open(DEV, NAME, OFlags::PATH) {
        let tree = open_tree(checked(null)?, "", flags | OpenTreeFlags::AT_EMPTY_PATH)?;
        return Ok(tree);
    }
    // A container with a volume at `/dev` has no null device: use the host's, read-only.
    let tree = checked(open_tree(CWD, "/dev/null", flags)?)?;
    sys::mount_setattr(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, 0, false)?;
    Ok(tree)
}

/// Opens the null device of a container that is being created.
pub(super) fn of_new(filesystems: &NewFilesystems<'_>) -> rustix::io::Result<OwnedFd> {
    match filesystems.open(DEV, NAME, OFlags::RDWR) {
        Some(Ok(null)) => checked(null),
        _ => create(),
    }
}

/// Opens the null device of a running container, which may have replaced it.
pub(super) fn of_running() -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let found = openat2(
        CWD,
        "/dev/null",
        flags,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    );
    found.and_then(checked).or_else(|_| create())
}

pub(super) fn is_null(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|about| {
        FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice
            && about.st_rdev == makedev(1, 3)
    })
}

fn checked(file: OwnedFd) -> rustix::io::Result<OwnedFd> {
    if is_null(&file) {
        Ok(file)
    } else {
        Err(Errno::NODEV)
    }
}

/// Creates one in a detached filesystem.
fn create() -> rustix::io::Result<OwnedFd> {
    let mount = new_mount(&Filesystem {
        kind: "tmpfs".to_owned(),
        ..Filesystem::default()
    })?;
    let mode = Mode::from_raw_mode(0o666);
    mknodat(&mount, NAME, FileType::CharacterDevice, mode, makedev(1, 3))?;
    openat(&mount, NAME, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}
