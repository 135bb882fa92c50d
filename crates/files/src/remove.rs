//! Removing a tree, whatever shape it has.
//!
//! The tree is taken down depth first with at most [`WINDOW`] folders open. A folder that lies
//! deeper is moved into a folder of ours directly below the top, and is taken down from there: so
//! the depth of a tree costs time and nothing else, and no path is ever longer than the window. An
//! entry that cannot be removed does not keep the others from going.

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

/// Most folders that are open at a time, one below the other.
const WINDOW: usize = 32;

/// How often the top is read anew. Somebody who keeps adding to a tree must not keep us for ever.
const MOST_PASSES: u32 = 1 << 17;

/// What our folder for deep ones is called, with a number.
const ASIDE: &str = ".coracle-removed-";

/// Removes a folder with all that is in it, or a file, or a link. What is not there is removed
/// already.
///
/// # Errors
/// Something is left: it is mounted, may not be removed, or was added meanwhile. Everything else is
/// gone.
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

/// The same by the folder that it is in, and its name there.
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

    for _ in 0..MOST_PASSES {
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

/// Removes what is no folder; false: it is one.
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
    /// How many entries are gone.
    removed: u64,
    /// The first thing that went wrong since the top was read last.
    failure: Option<Errno>,
}

/// A folder directly below the top, for folders that are too deep.
struct Aside {
    name: CString,
    stream: Dir,
    /// How many were moved there, for their names.
    moved: u64,
}

/// An open folder below the top, and its name in the one above.
struct Level {
    stream: Dir,
    name: CString,
}

impl Removal {
    /// Removes everything once: what is at the top, then what was moved aside.
    fn empty_once(&mut self) {
        self.failure = None;

        match self.top.fd().and_then(Dir::read_from) {
            Ok(top) => self.empty(top),
            Err(errno) => return self.failed(errno),
        }

        for _ in 0..MOST_PASSES {
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
            // One that is not empty is looked into with everything else in the next pass.
            unlinkat(top, aside.name.as_c_str(), AtFlags::REMOVEDIR).unwrap_or_default();
        }
    }

    /// Removes what is in a folder, as far as it goes.
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

    /// Removes an entry of the deepest level. A folder that holds something becomes the deepest
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
            // Too deep, or this process has no descriptor left: it is closer to the top next time.
            Err(Errno::MFILE | Errno::NFILE) => match self.move_aside(folder, name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => self.failed(errno),
            },
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(Errno::XDEV) => self.failed(Errno::BUSY),
            Err(errno) => self.failed(errno),
        }
    }

    /// The deepest level has been read to its end: it goes, unless something of it stays.
    fn finish_level(&mut self, levels: &mut Vec<Level>) {
        let Some(done) = levels.pop() else { return };
        let Some(above) = levels.last().and_then(|level| level.stream.fd().ok()) else {
            return;
        };
        let Level { stream, name } = done;

        // Closed first: file systems take longer to remove a folder that is still open.
        drop(stream);
        let name = name.as_c_str();
        match permitted(above, || unlinkat(above, name, AtFlags::REMOVEDIR)) {
            Ok(()) => self.removed += 1,
            // What is left in there has been told, was added meanwhile, or was not shown: the next
            // pass sees it.
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
            // To move a folder is to change it.
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
            let name = CString::new(format!("{ASIDE}{number}")).map_err(|_| Errno::INVAL)?;
            match permitted(top, || {
                mkdirat(top, name.as_c_str(), Mode::from_raw_mode(0o700))
            }) {
                // Left by a removal that did not come to its end; it goes like everything else.
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

/// Removes a file, or a folder that is empty, whatever of the two it has become.
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

/// Opens a folder below another, also one whose mode lets nobody in.
fn enter_permitted(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    match enter(folder, name) {
        Err(Errno::ACCESS) => {
            permit_at(folder, name)?;
            enter(folder, name)
        }
        entered => entered,
    }
}

/// Changes something in a folder, also where the folder's mode forbids that.
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
