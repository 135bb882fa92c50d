//! Visits everything in a tree of any depth, even if it changes meanwhile.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::open::enter;
use crate::trail::Trail;

/// An entry of a directory.
pub struct WalkEntry<'a> {
    /// The directory.
    pub folder: BorrowedFd<'a>,
    pub name: &'a CStr,
    /// Its metadata; of a symlink itself.
    pub about: Stat,
}

impl WalkEntry<'_> {
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.about.st_mode)
    }

    /// Opens the entry with `O_PATH`; `None`: it was removed or replaced.
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

/// A visitor of the entries of a tree.
pub trait Visitor {
    /// Visits an entry of any type. The contents of a directory come after it.
    fn visit(&mut self, found: &WalkEntry<'_>) -> io::Result<()>;

    /// Called after the contents of a directory were visited. The top comes last.
    fn leave(&mut self, _folder: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(&WalkEntry<'_>) -> io::Result<()>> Visitor for F {
    fn visit(&mut self, found: &WalkEntry<'_>) -> io::Result<()> {
        self(found)
    }
}

/// Visits everything below a directory, without mounts and symlink targets. Entries that are
/// removed meanwhile are skipped.
///
/// # Errors
/// The visitor's error, or an error reading the tree; entries before it were visited.
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

        let found = WalkEntry {
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
            // It was removed or replaced, or is a mount point.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
            Err(errno) => return Err(errno.into()),
        }
    }

    Ok(())
}

/// The disk usage of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files, directories, symlinks and other entries.
    pub inodes: u64,
}

/// The disk usage below a directory, without the directory itself. If the walk fails, the usage so
/// far is returned with the error: a program that changes its tree meanwhile must not hide its
/// usage.
pub fn usage(top: OwnedFd) -> (Usage, io::Result<()>) {
    let mut usage = Usage::default();
    let walked = walk(top, &mut |found: &WalkEntry<'_>| {
        usage.bytes += found.about.st_blocks.cast_unsigned() * 512;
        usage.inodes += 1;
        Ok(())
    });
    (usage, walked)
}
