//! Paths of a layer, resolved so that nothing leads out of its folder.
//!
//! The kernel resolves them with the folder as root (`openat2` with `RESOLVE_IN_ROOT`): an absolute link, or one with too
//! many `..`, ends inside. What is made is made relative to the open folder that was found, without following a last link.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The path that an entry's name stands for, relative to the layer. None: it leads out of the layer.
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

/// The folder that holds the last part of a path, and that part. The layer's own folder has no name in it.
pub(super) fn split(path: &Path) -> (&Path, Option<&OsStr>) {
    (path.parent().unwrap_or(Path::new("")), path.file_name())
}

/// Opens a folder below `root`.
pub(super) fn open_folder(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    loop {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat2(root.as_fd(), path, flags, Mode::empty(), resolve) {
            // Something else in the tree was renamed meanwhile; the kernel asks to be asked again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            found => return found,
        }
    }
}

/// Opens a folder below `root`, making those that are missing, and returns which were.
pub(super) fn make_folder(root: impl AsFd, path: &Path) -> Result<(OwnedFd, Vec<PathBuf>), Errno> {
    match open_folder(root.as_fd(), path) {
        Err(Errno::NOENT) => {}
        found => return found.map(|folder| (folder, Vec::new())),
    }
    let (parent, name) = split(path);
    let name = name.ok_or(Errno::NOENT)?;
    let (parent, mut made) = make_folder(root.as_fd(), parent)?;
    // A link that leads nowhere is in the way: the name exists, and its folder does not.
    rustix::fs::mkdirat(&parent, name, Mode::from(0o755))
        .map_err(|errno| if errno == Errno::EXIST { Errno::NOTDIR } else { errno })?;
    made.push(path.to_owned());
    Ok((open_folder(root, path)?, made))
}

/// What there is under a name in a folder, without following it.
pub(super) fn kind_of(folder: impl AsFd, name: &OsStr) -> Result<Option<(FileType, u64)>, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some((FileType::from_raw_mode(found.st_mode), found.st_rdev))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Removes whatever has a name in a folder, with all that is below. Nothing there is no error.
pub(super) fn remove(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder.as_fd(), name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = rustix::fs::openat(folder.as_fd(), name, flags, Mode::empty())?;
    let names: Vec<OsString> = Dir::read_from(&inner)?
        .map(|entry| entry.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()))
        .collect::<Result<_, _>>()?;
    for entry in names.iter().filter(|entry| *entry != "." && *entry != "..") {
        remove(&inner, entry)?;
    }
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_are_none() {
        let check = |name: &[u8], expected: Option<&str>| {
            assert_eq!(inside(name).as_deref(), expected.map(Path::new), "{}", String::from_utf8_lossy(name));
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
