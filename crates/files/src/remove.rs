//! Removes a tree of any shape.
//!
//! The tree is removed depth first with at most [`WINDOW`] directories open. A directory that is
//! deeper is moved into a temporary directory directly below the top, and is removed from there: so
//! the depth of a tree costs only time, and no path is longer than the window. An entry that cannot
//! be removed does not prevent the removal of the others.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, chmodat, fchmod, mkdirat, open, renameat,
    unlinkat,
};
use rustix::io::Errno;

use crate::open::{enter, locate};

/// The maximum number of nested directories that are open.
const WINDOW: usize = 32;

/// The maximum number of passes over the top, because a program may keep adding to the tree.
const MAX_PASSES: u32 = 1 << 17;

/// The name of the temporary directory, followed by a number.
const TEMPORARY: &str = ".coracle-removed-";

/// Removes a directory with its contents, a file, or a symlink. A missing path is no error.
///
/// # Errors
/// Something remains: it is a mount point, cannot be removed, or was added meanwhile. Everything
/// else is removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let above = path
        .parent()
        .filter(|above| !above.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match open(above, flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(()),
        above => remove_tree_at(above?, &CString::new(name.as_bytes())?),
    }
}

/// The same by the parent directory and the name.
pub fn remove_tree_at(above: impl AsFd, name: &CStr) -> io::Result<()> {
    let above = above.as_fd();
    if remove_file(above, name)? {
        return Ok(());
    }

    let top = match enter_permitted(above, name) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::XDEV) => return Err(Errno::BUSY.into()),
        top => top?,
    };

    let mut removal = Removal {
        top: Dir::new(top)?,
        aside: None,
        removed: 0,
        failure: None,
    };

    for _ in 0..MAX_PASSES {
        let before = removal.removed;
        removal.empty_once();
        match unlinkat(above, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) if removal.removed > before => {}
            Err(errno) => return Err(removal.failure.unwrap_or(errno).into()),
        }
    }

    Err(Errno::NOTEMPTY.into())
}

/// Removes a file; returns false if it is a directory.
fn remove_file(above: BorrowedFd<'_>, name: &CStr) -> Result<bool, Errno> {
    match unlinkat(above, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

struct Removal {
    top: Dir,
    aside: Option<Aside>,
    /// The number of entries removed.
    removed: u64,
    /// The first error since the last pass started.
    failure: Option<Errno>,
}

/// The temporary directory below the top, for directories that are too deep.
struct Aside {
    name: CString,
    stream: Dir,
    /// How many were moved there, for their names.
    moved: u64,
}

/// An open directory below the top, and its name in its parent.
struct Level {
    stream: Dir,
    name: CString,
}

impl Removal {
    /// One pass: removes the contents of the top, then those of the temporary directory.
    fn empty_once(&mut self) {
        self.failure = None;

        match self.top.fd().and_then(Dir::read_from) {
            Ok(top) => self.empty(top),
            Err(errno) => return self.failed(errno),
        }

        for _ in 0..MAX_PASSES {
            let Some(aside) = &self.aside else { return };
            let before = (aside.moved, self.removed);

            match aside.stream.fd().and_then(Dir::read_from) {
                Ok(again) => self.empty(again),
                Err(errno) => return self.failed(errno),
            }

            let moved = self.aside.as_ref().map_or(0, |aside| aside.moved);
            if moved == before.0 || self.removed == before.1 {
                break;
            }
        }

        if let (Some(aside), Ok(top)) = (self.aside.take(), self.top.fd()) {
            // If it is not empty, the next pass removes it with everything else.
            unlinkat(top, aside.name.as_c_str(), AtFlags::REMOVEDIR).unwrap_or_default();
        }
    }

    /// Removes the contents of a directory as far as possible.
    fn empty(&mut self, folder: Dir) {
        let mut levels = vec![Level {
            stream: folder,
            name: CString::default(),
        }];

        while let Some(level) = levels.last_mut() {
            match level.stream.read() {
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Some(Ok(entry)) => self.remove_entry(&mut levels, &entry),
                Some(Err(errno)) => self.failed(errno),
                None => self.finish_level(&mut levels),
            }
        }
    }

    /// Removes an entry of the deepest level. A directory that is not empty becomes the deepest
    /// level.
    fn remove_entry(&mut self, levels: &mut Vec<Level>, entry: &DirEntry) {
        let Some(folder) = levels.last().and_then(|level| level.stream.fd().ok()) else {
            return;
        };

        let name = entry.file_name();
        if levels.len() == 1
            && self
                .aside
                .as_ref()
                .is_some_and(|aside| aside.name.as_c_str() == name)
        {
            return;
        }

        let is_folder = entry.file_type() == FileType::Directory;
        match permitted(folder, || remove_either(folder, name, is_folder)) {
            Ok(()) => return self.removed += 1,
            Err(Errno::NOENT) => return,
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return self.failed(errno),
        }

        let entered = if levels.len() < WINDOW {
            enter_permitted(folder, name)
        } else {
            Err(Errno::MFILE)
        };

        match entered.and_then(Dir::new) {
            Ok(stream) => levels.push(Level {
                stream,
                name: name.to_owned(),
            }),
            // Too deep, or no descriptors left: it is moved closer to the top.
            Err(Errno::MFILE | Errno::NFILE) => match self.move_aside(folder, name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => self.failed(errno),
            },
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(Errno::XDEV) => self.failed(Errno::BUSY),
            Err(errno) => self.failed(errno),
        }
    }

    /// The deepest level was read to its end: remove it, unless some of its contents remain.
    fn finish_level(&mut self, levels: &mut Vec<Level>) {
        let Some(done) = levels.pop() else { return };
        let Some(above) = levels.last().and_then(|level| level.stream.fd().ok()) else {
            return;
        };
        let Level { stream, name } = done;

        // Closed first: file systems take longer to remove a directory that is open.
        drop(stream);
        let name = name.as_c_str();
        match permitted(above, || unlinkat(above, name, AtFlags::REMOVEDIR)) {
            Ok(()) => self.removed += 1,
            // The remaining contents were reported, were added meanwhile, or were not listed: the
            // next pass sees them.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
            Err(errno) => self.failed(errno),
        }
    }

    fn move_aside(&mut self, folder: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        if self.aside.is_none() {
            self.aside = Some(Aside::make(self.top.fd()?)?);
        }

        let Some(aside) = &mut self.aside else {
            return Err(Errno::NOENT);
        };
        let to = aside.stream.fd()?;

        let number = aside.moved.to_string();
        let moved = match permitted(folder, || renameat(folder, name, to, number.as_str())) {
            // Moving a directory requires write permission on it.
            Err(Errno::ACCESS) => {
                permit_at(folder, name)?;
                renameat(folder, name, to, number.as_str())
            }
            moved => moved,
        };
        aside.moved += 1;

        moved
    }

    fn failed(&mut self, errno: Errno) {
        self.failure.get_or_insert(errno);
    }
}

impl Aside {
    fn make(top: BorrowedFd<'_>) -> Result<Aside, Errno> {
        let mut number = 0_u32;
        loop {
            let name = CString::new(format!("{TEMPORARY}{number}")).map_err(|_| Errno::INVAL)?;
            match permitted(top, || {
                mkdirat(top, name.as_c_str(), Mode::from_raw_mode(0o700))
            }) {
                // Left by an interrupted removal; it is removed like everything else.
                Err(Errno::EXIST) => number += 1,
                Err(errno) => return Err(errno),
                Ok(()) => {
                    let stream = Dir::new(enter(top, name.as_c_str())?)?;
                    return Ok(Aside {
                        name,
                        stream,
                        moved: 0,
                    });
                }
            }
        }
    }
}

/// Removes a file or an empty directory, whichever it is now.
fn remove_either(folder: BorrowedFd<'_>, name: &CStr, is_folder: bool) -> Result<(), Errno> {
    let remove = |is_folder| {
        let flags = if is_folder {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        unlinkat(folder, name, flags)
    };

    match remove(is_folder) {
        Err(Errno::NOTDIR | Errno::ISDIR) => remove(!is_folder),
        removed => removed,
    }
}

/// Opens a directory in another, changing its mode if that denies access.
fn enter_permitted(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    match enter(folder, name) {
        Err(Errno::ACCESS) => {
            permit_at(folder, name)?;
            enter(folder, name)
        }
        entered => entered,
    }
}

/// Changes something in a directory, changing the directory's mode if that denies it.
fn permitted<T>(folder: BorrowedFd<'_>, change: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match change() {
        Err(Errno::ACCESS) => {
            fchmod(folder, Mode::from_raw_mode(0o700))?;
            change()
        }
        done => done,
    }
}

fn permit_at(folder: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let located = locate(folder, name)?;
    let path = format!("/proc/self/fd/{}", located.as_raw_fd());
    chmodat(CWD, path, Mode::from_raw_mode(0o700), AtFlags::empty())
}
