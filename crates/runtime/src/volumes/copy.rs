//! Copies a directory tree with owners, modes, times, extended attributes, hard links and holes.
//!
//! Every folder is resolved from the top without following links, and its entries by name only: a
//! symbolic link is copied as a link. The number of open descriptors does not grow with the depth.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, SeekFrom, Stat, Timespec, Timestamps,
    Uid, XattrFlags, chmodat, chownat, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fstat,
    futimens, linkat, mkdirat, mknodat, openat, openat2, readlinkat, seek, statat, symlinkat,
    utimensat,
};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Copies the content and metadata of a folder to an empty one.
pub(super) fn content(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let mut copy = Copy {
        from,
        to,
        files: BTreeMap::new(),
    };

    let mut folders = vec![PathBuf::from(".")];
    let mut next = 0;
    while next < folders.len() {
        let inner = copy.folder(&folders[next])?;
        folders.extend(inner);
        next += 1;
    }

    // The deepest first: adding entries changes the times of a folder.
    for path in folders.iter().rev() {
        copy_metadata(&find(from, path)?, &find(to, path)?)?;
    }

    Ok(())
}

/// Sets the default mode of folders, independent of the umask.
pub(super) fn set_default_mode(folder: &OwnedFd) -> io::Result<()> {
    Ok(fchmod(folder, Mode::from(0o755))?)
}

struct Copy<'a> {
    from: &'a OwnedFd,
    to: &'a OwnedFd,
    /// Hard-linked files, by the first name that was copied.
    files: BTreeMap<(u64, u64), PathBuf>,
}

impl Copy<'_> {
    /// Copies the entries of one folder, and returns its subfolders, which are still empty.
    fn folder(&mut self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let (here, there) = (find(self.from, path)?, find(self.to, path)?);
        let mut folders = Vec::new();
        for entry in Dir::read_from(&here)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }

            let found = statat(&here, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => {
                    mkdirat(&there, name, Mode::from(0o700))?;
                    folders.push(path.join(name));
                }
                FileType::RegularFile => self.file(&here, &there, &path.join(name), &found)?,
                FileType::Symlink => {
                    symlinkat(readlinkat(&here, name, Vec::new())?, &there, name)?;
                    copy_metadata_at(&there, name, &found)?;
                }
                // Sockets of an image are useless.
                FileType::Socket => {}
                kind => {
                    let mode = Mode::from_raw_mode(found.st_mode);
                    mknodat(&there, name, kind, mode, found.st_rdev)?;
                    copy_metadata_at(&there, name, &found)?;
                    chmodat(&there, name, mode, AtFlags::empty())?;
                }
            }
        }

        Ok(folders)
    }

    fn file(
        &mut self,
        here: &OwnedFd,
        there: &OwnedFd,
        path: &Path,
        found: &Stat,
    ) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default();
        if found.st_nlink > 1 {
            if let Some(first) = self.files.get(&(found.st_dev, found.st_ino)) {
                let folder = find(self.to, first.parent().unwrap_or(Path::new(".")))?;
                return Ok(linkat(
                    folder,
                    first.file_name().unwrap_or_default(),
                    there,
                    name,
                    AtFlags::empty(),
                )?);
            }

            self.files
                .insert((found.st_dev, found.st_ino), path.to_owned());
        }

        let from = File::from(openat(here, name, OFlags::RDONLY | FILE, Mode::empty())?);
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | FILE;
        let to = File::from(openat(there, name, new, Mode::from(0o600))?);
        copy_data(&from, &to, found.st_size.cast_unsigned())?;

        copy_metadata(&from, &to)
    }
}

/// The data of a file; what is a hole stays one.
fn copy_data(mut from: &File, mut to: &File, size: u64) -> io::Result<()> {
    let mut at = 0;
    loop {
        let begin = match seek(from, SeekFrom::Data(at)) {
            // Nothing but a hole, up to the end.
            Err(Errno::NXIO) => break,
            found => found?,
        };
        let end = seek(from, SeekFrom::Hole(begin))?;

        from.seek(io::SeekFrom::Start(begin))?;
        to.seek(io::SeekFrom::Start(begin))?;
        io::copy(&mut from.take(end - begin), &mut to)?;
        at = end;
    }

    to.set_len(size)
}

/// Opens a folder below another; nothing of its path is a link.
fn find(top: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };

    loop {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(top, path, FOLDER, Mode::empty(), how) {
            // A concurrent rename; the kernel asks to retry.
            Err(Errno::AGAIN | Errno::INTR) => {}
            found => return found,
        }
    }
}

/// Owner, mode, attributes and times. The owner first: chown clears setuid bits and capabilities.
fn copy_metadata(from: impl AsFd, to: impl AsFd) -> io::Result<()> {
    let found = fstat(&from)?;
    fchown(
        &to,
        Some(Uid::from_raw(found.st_uid)),
        Some(Gid::from_raw(found.st_gid)),
    )?;
    fchmod(&to, Mode::from_raw_mode(found.st_mode))?;
    for name in attributes(&from)? {
        copy_attribute(&from, &to, &name)?;
    }
    Ok(futimens(&to, &times(&found))?)
}

/// The same for files that cannot be opened, without extended attributes.
fn copy_metadata_at(folder: &OwnedFd, name: &OsStr, found: &Stat) -> io::Result<()> {
    let owner = (
        Some(Uid::from_raw(found.st_uid)),
        Some(Gid::from_raw(found.st_gid)),
    );
    chownat(folder, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(utimensat(
        folder,
        name,
        &times(found),
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn times(found: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or_default(),
    };
    Timestamps {
        last_access: time(found.st_atime, found.st_atime_nsec),
        last_modification: time(found.st_mtime, found.st_mtime_nsec),
    }
}

/// The names of the attributes to copy, without SELinux labels and overlay's own.
fn attributes(of: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0; MOST_NAMES];
    let length = match flistxattr(of, &mut names[..]) {
        Err(Errno::OPNOTSUPP) => 0,
        found => found?,
    };
    names.truncate(length);

    let is_copied = |name: &&[u8]| {
        let left: [&[u8]; 3] = [b"security.selinux", b"trusted.overlay.", b"user.overlay."];
        !name.is_empty() && !left.iter().any(|left| name.starts_with(left))
    };
    let names = names.split(|byte| *byte == 0).filter(is_copied);

    Ok(names.map(|name| [name, &[0]].concat()).collect())
}

fn copy_attribute(from: impl AsFd, to: impl AsFd, name: &[u8]) -> io::Result<()> {
    let name = CStr::from_bytes_with_nul(name).map_err(io::Error::other)?;
    let mut value = vec![0; LARGEST_VALUE];
    let length = match fgetxattr(from, name, &mut value[..]) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(()),
        found => found?,
    };
    match fsetxattr(to, name, &value[..length], XattrFlags::empty()) {
        // Not every filesystem supports every attribute; unpacking ignores this too.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The kernel's limits.
const MOST_NAMES: usize = 64 << 10;
const LARGEST_VALUE: usize = 64 << 10;
