//! Opens directories relative to their parent.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use rustix::path::Arg;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Opens a directory for reading. Symlinks in its parent path are followed, it must not be one
/// itself.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, FOLDER, Mode::empty())?)
}

/// Opens a directory in a directory that is neither a symlink nor a mount point.
pub(crate) fn enter(folder: impl AsFd, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    resolve(folder, name, FOLDER)
}

/// The same without read access (`O_PATH`), which needs no permission.
pub(crate) fn locate(folder: impl AsFd, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    resolve(folder, name, flags)
}

/// Opens the parent of a directory.
pub(crate) fn leave(folder: impl AsFd) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, c"..", FOLDER, Mode::empty())
}

fn resolve(folder: impl AsFd, name: impl Arg + Copy, flags: OFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    loop {
        match openat2(folder.as_fd(), name, flags, Mode::empty(), how) {
            // Something was renamed or mounted meanwhile; the kernel asks for a retry.
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
}
