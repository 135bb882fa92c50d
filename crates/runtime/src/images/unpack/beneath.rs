//! Resolves paths of a layer so that none leads out of its folder.
//!
//! The kernel resolves them with the folder as root (`openat2` with `RESOLVE_IN_ROOT`): an absolute
//! link, or one with too many `..`, ends inside. Entries are created relative to the open folder,
//! without following a final link.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The path of an entry's name, relative to the layer; none if it leads out of the layer.
pub(super) fn inside(name: &[u8]) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(OsStr::from_bytes(name)).components() {
        match component {
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
            Component::Normal(part) => path.push(part),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
        }
    }

    (!name.contains(&0)).then_some(path)
}

/// Splits a path into folder and name. The root of the layer has no name.
pub(super) fn split(path: &Path) -> (&Path, Option<&OsStr>) {
    (path.parent().unwrap_or(Path::new("")), path.file_name())
}

/// Opens a folder below `root`.
pub(super) fn open_folder(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    open(root, path, ResolveFlags::empty())
}

fn open(root: impl AsFd, path: &Path, how: ResolveFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };

    let resolve = how | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    loop {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat2(root.as_fd(), path, flags, Mode::empty(), resolve) {
            // A concurrent rename in the tree; the kernel asks to retry.
            Err(Errno::AGAIN | Errno::INTR) => {}
            found => return found,
        }
    }
}

/// An open folder below a root.
pub(super) struct OpenFolder {
    pub(super) folder: OwnedFd,
    /// Its path, with all links resolved.
    pub(super) path: PathBuf,
    /// The created folders, with all links resolved.
    pub(super) made: Vec<PathBuf>,
}

/// Opens a folder below `root`, creating missing ones, also targets of dangling links.
pub(super) fn make_folder(root: impl AsFd, path: &Path) -> Result<OpenFolder, Errno> {
    match open(root.as_fd(), path, ResolveFlags::NO_SYMLINKS) {
        // A component is missing, or is a link.
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => walk(root, path),
        found => Ok(OpenFolder {
            folder: found?,
            path: path.to_owned(),
            made: Vec::new(),
        }),
    }
}

/// Walks a path name by name. A link is followed as the kernel would with `root` as root, by
/// walking its target: every step opens a name in an open folder without following links.
fn walk(root: impl AsFd, path: &Path) -> Result<OpenFolder, Errno> {
    let root = root.as_fd();
    let mut at = OpenFolder {
        folder: open_folder(root, Path::new(""))?,
        path: PathBuf::new(),
        made: Vec::new(),
    };

    let mut names: VecDeque<OsString> = names_of(path).collect();
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        if name == ".." {
            // Above the root is the root.
            at.path.pop();
            at.folder = open(root, &at.path, ResolveFlags::NO_SYMLINKS)?;
            continue;
        }

        match enter(&at.folder, &name) {
            Err(Errno::NOENT) => {
                rustix::fs::mkdirat(&at.folder, &name, Mode::from(0o755))?;
                at.made.push(at.path.join(&name));
                at.folder = enter(&at.folder, &name)?;
                at.path.push(name);
            }
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let target = link_at(&at.folder, &name)?;
                links += 1;

                if links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }

                if target.is_absolute() {
                    at.path.clear();
                    at.folder = open_folder(root, Path::new(""))?;
                }

                names = names_of(&target).chain(names).collect();
            }
            found => {
                at.folder = found?;
                at.path.push(name);
            }
        }

        // Chained links are bounded like one path.
        if at.path.as_os_str().len() > LONGEST_PATH {
            return Err(Errno::NAMETOOLONG);
        }
    }

    Ok(at)
}

/// The kernel's limits of links and path length.
const MOST_LINKS: usize = 40;
const LONGEST_PATH: usize = 4095;

fn names_of(path: &Path) -> impl Iterator<Item = OsString> {
    let is_name =
        |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components()
        .filter(is_name)
        .map(|part| part.as_os_str().to_owned())
}

/// Opens a folder in a folder; no link is followed.
pub(super) fn enter(folder: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// The target of a link. Anything else is ENOTDIR.
fn link_at(folder: impl AsFd, name: &OsStr) -> Result<PathBuf, Errno> {
    match rustix::fs::readlinkat(folder, name, Vec::new()) {
        Err(Errno::INVAL) => Err(Errno::NOTDIR),
        found => Ok(PathBuf::from(OsStr::from_bytes(found?.to_bytes()))),
    }
}

/// The type and device of an entry, without following links.
pub(super) fn kind_of(folder: impl AsFd, name: &OsStr) -> Result<Option<(FileType, u64)>, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some((
            FileType::from_raw_mode(found.st_mode),
            found.st_rdev,
        ))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Removes an entry recursively. Idempotent.
pub(super) fn remove(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
    coracle_files::remove_tree_at(folder, &name)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_layer_are_refused() {
        let check = |name: &[u8], expected: Option<&str>| {
            assert_eq!(
                inside(name).as_deref(),
                expected.map(Path::new),
                "{}",
                String::from_utf8_lossy(name)
            );
        };

        check(b"./a/b", Some("a/b"));
        check(b"/a//b/", Some("a/b"));
        check(b"a/../b", Some("b"));
        check(b".", Some(""));
        check(b"", Some(""));
        check(b"..", None);
        check(b"a/../../b", None);
        check(b"/..", None);
        check(b"a\0b", None);
    }
}
