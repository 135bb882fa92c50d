//! Visiting everything in a tree, however deep it is and whoever changes it meanwhile.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::open::enter;
use crate::trail::Trail;

/// Something in a folder.
pub struct Found<'a> {
    /// The folder that it is in.
    pub folder: BorrowedFd<'a>,
    pub name: &'a CStr,
    /// What it is; of a link, the link itself.
    pub about: Stat,
}

impl Found<'_> {
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.about.st_mode)
    }

    /// Opens what was found, without reading it; none: it has gone, or something else has taken its
    /// place.
    pub fn locate(&self) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let located = match openat(self.folder, self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            located => located?,
        };
        let now = fstat(&located)?;
        let is_same = (now.st_dev, now.st_ino) == (self.about.st_dev, self.about.st_ino);
        Ok(Some(located).filter(|_| is_same))
    }
}

/// What is done with the entries of a tree.
pub trait Visitor {
    /// An entry of any kind. Those that are in a folder come after it.
    fn visit(&mut self, found: &Found<'_>) -> io::Result<()>;

    /// All that is in a folder has been visited. The top comes last.
    fn leave(&mut self, _folder: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(&Found<'_>) -> io::Result<()>> Visitor for F {
    fn visit(&mut self, found: &Found<'_>) -> io::Result<()> {
        self(found)
    }
}

/// Visits all that is below a folder, but neither what is mounted there nor what links lead to.
/// What goes meanwhile is passed over.
///
/// # Errors
/// Of the visitor, and where the tree cannot be read: what was visited by then was visited.
pub fn walk(top: OwnedFd, visitor: &mut impl Visitor) -> io::Result<()> {
    let mut trail = Trail::new(top)?;
    while trail.depth() > 0 {
        let Some(entry) = trail.read()? else {
            visitor.leave(trail.here()?)?;
            trail.climb()?;
            continue;
        };

        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }

        let folder = trail.here()?;
        let about = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            about => about?,
        };

        let found = Found {
            folder,
            name,
            about,
        };
        visitor.visit(&found)?;

        if !found.kind().is_dir() {
            continue;
        }

        match enter(trail.here()?, name) {
            Ok(inner) => trail.descend(inner)?,
            // It went, became something else, or something is mounted there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
            Err(errno) => return Err(errno.into()),
        }
    }

    Ok(())
}

/// What a tree takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files, folders, links and everything else.
    pub inodes: u64,
}

/// What is below a folder takes, without the folder itself. Where a walk ends early, what was found
/// until then is told beside the reason: a program that changes its tree meanwhile must not make
/// what it has written count for nothing.
pub fn usage(top: OwnedFd) -> (Usage, io::Result<()>) {
    let mut usage = Usage::default();
    let walked = walk(top, &mut |found: &Found<'_>| {
        usage.bytes += found.about.st_blocks.cast_unsigned() * 512;
        usage.inodes += 1;
        Ok(())
    });
    (usage, walked)
}
