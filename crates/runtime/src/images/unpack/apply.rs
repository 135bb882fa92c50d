//! Applies one entry of a layer's archive to the layer's folder.
//!
//! Whiteouts of the archive become overlayfs whiteouts: a removed name is a device 0:0, an opaque
//! folder has `trusted.overlay.opaque`. Overlay attributes in the archive are ignored: they could
//! point a layer at files that are not its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use tar::{Entry, EntryType};

use super::beneath::{self, OpenFolder, inside, split};
use super::sparse::Sparse;
use super::{Limits, UnpackError, Unpacked};
use crate::images::legible::legible_error;

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE_WHITEOUT: &[u8] = b".wh..wh..opq";
/// Metadata files of aufs, which are ignored.
const AUFS_METADATA: &[u8] = b".wh..wh.";
const OPAQUE_XATTR: &str = "trusted.overlay.opaque";
const XATTR: &str = "SCHILY.xattr.";
const BLOCK: u64 = 4096;
/// The limit of the names of folders without an entry of their own, which are kept in memory: one entry can imply two
/// thousand folders with names of two kilobytes.
const MAX_IMPLIED_NAMES: usize = 64 << 20;

pub(super) struct Applier<'a> {
    root: OwnedFd,
    limits: &'a Limits,
    /// The folder of the previous entry, cached because archives are ordered by folder. It can only
    /// be changed by an entry in another folder, which replaces the cache.
    open: Option<(PathBuf, OpenFolder)>,
    /// Times of folders are set last: adding entries changes them.
    times: Vec<(PathBuf, Timestamps)>,
    written: u64,
    /// The length of all names in `done.implied`.
    implied_names: usize,
    pub(super) done: Unpacked,
}

/// Owner, mode and times of an entry.
struct Metadata {
    uid: u32,
    gid: u32,
    mode: Mode,
    times: Timestamps,
    xattrs: Vec<(String, Vec<u8>)>,
}

impl<'a> Applier<'a> {
    pub(super) fn new(root: OwnedFd, limits: &'a Limits) -> Self {
        Self {
            root,
            limits,
            open: None,
            times: Vec::new(),
            written: 0,
            implied_names: 0,
            done: Unpacked::default(),
        }
    }

    pub(super) fn apply(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), UnpackError> {
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            return Ok(());
        }

        let sparse = Sparse::of(entry).map_err(|source| UnpackError::Sparse {
            path: as_path(&entry.path_bytes()),
            source,
        })?;
        let own_name = sparse.as_ref().and_then(|sparse| sparse.name.clone());
        let name = own_name.unwrap_or_else(|| entry.path_bytes().into_owned());

        let refused = || String::from_utf8_lossy(&name).into_owned();
        let path = inside(&name).ok_or_else(|| UnpackError::Escapes(refused()))?;
        let failed = |errno: Errno| UnpackError::Entry {
            path: path.clone(),
            source: errno.into(),
        };

        let metadata = Metadata::of(entry).map_err(|error| UnpackError::Entry {
            path: path.clone(),
            source: legible_error(&error),
        })?;

        let (folder, last) = split(&path);
        let Some(last) = last else {
            return self.set_root(&metadata).map_err(failed);
        };
        self.enter(folder).map_err(failed)?;
        // A whiteout is an entry on the disk too.
        self.count()?;

        if last.as_bytes().starts_with(WHITEOUT) {
            return self.apply_whiteout(last).map_err(failed);
        }

        match kind {
            EntryType::Directory => self.folder(last, &metadata).map_err(failed),
            EntryType::Link => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                let target = inside(&target).ok_or_else(|| UnpackError::Escapes(refused()))?;
                self.hard_link(&target, last).map_err(failed)
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                self.symlink(OsStr::from_bytes(&target), last, &metadata)
                    .map_err(failed)
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                let number = |part: io::Result<Option<u32>>| part.ok().flatten().unwrap_or(0);
                let header = entry.header();
                let device = rustix::fs::makedev(
                    number(header.device_major()),
                    number(header.device_minor()),
                );
                self.node(kind, device, last, &metadata).map_err(failed)
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => match sparse {
                Some(sparse) => self.sparse_file(&path, last, &metadata, sparse, entry),
                None => self.file(&path, last, &metadata, entry),
            },
            _ => Err(UnpackError::Kind {
                path,
                kind: kind.as_byte(),
            }),
        }
    }

    /// Sets the times of folders.
    pub(super) fn finish(self) -> Result<Unpacked, UnpackError> {
        for (path, times) in self.times.iter().rev() {
            let failed = |errno: Errno| UnpackError::Entry {
                path: path.clone(),
                source: errno.into(),
            };

            match beneath::open_folder(&self.root, path) {
                // Replaced by a later entry.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                found => rustix::fs::futimens(found.map_err(failed)?, times).map_err(failed)?,
            }
        }

        Ok(self.done)
    }

    fn count(&mut self) -> Result<(), UnpackError> {
        self.done.inodes += 1;
        if self.done.inodes > self.limits.entries {
            return Err(UnpackError::TooMany(self.limits.entries));
        }
        if self.implied_names > MAX_IMPLIED_NAMES {
            return Err(UnpackError::TooManyFolders(MAX_IMPLIED_NAMES));
        }

        Ok(())
    }

    /// Opens the folder of the entry, if it is not open already.
    fn enter(&mut self, folder: &Path) -> Result<(), Errno> {
        if self.open.as_ref().is_none_or(|(open, _)| open != folder) {
            let mut found = beneath::make_folder(&self.root, folder)?;
            self.done.inodes += u64::try_from(found.made.len()).expect("a count fits");
            self.implied_names += found
                .made
                .iter()
                .map(|folder| folder.as_os_str().len())
                .sum::<usize>();
            self.done.implied.extend(std::mem::take(&mut found.made));
            self.open = Some((folder.to_owned(), found));
        }
        Ok(())
    }

    fn open_folder(&self) -> &OpenFolder {
        let (_, folder) = self
            .open
            .as_ref()
            .expect("every entry enters its folder first");
        folder
    }

    fn here(&self) -> &OwnedFd {
        &self.open_folder().folder
    }

    /// Removes an existing entry of this name.
    fn remove_existing(&mut self, last: &OsStr) -> Result<(), Errno> {
        beneath::remove(self.here(), last)
    }

    /// Applies a `.wh.` whiteout: hides an entry of the layers below.
    fn apply_whiteout(&mut self, last: &OsStr) -> Result<(), Errno> {
        let mark = last.as_bytes();
        if mark == OPAQUE_WHITEOUT {
            return rustix::fs::fsetxattr(self.here(), OPAQUE_XATTR, b"y", XattrFlags::empty());
        }

        let name = OsStr::from_bytes(&mark[WHITEOUT.len()..]);

        if mark.starts_with(AUFS_METADATA) {
            return Ok(());
        }
        if name.is_empty() || name == "." || name == ".." {
            return Err(Errno::INVAL);
        }

        match beneath::kind_of(self.here(), name)? {
            // Entries of this layer stay; a folder becomes opaque.
            Some((FileType::Directory, _)) => {
                let inner = beneath::enter(self.here(), name)?;
                rustix::fs::fsetxattr(inner, OPAQUE_XATTR, b"y", XattrFlags::empty())
            }
            Some(_) => Ok(()),
            None => rustix::fs::mknodat(
                self.here(),
                name,
                FileType::CharacterDevice,
                Mode::empty(),
                0,
            ),
        }
    }

    fn set_root(&self, metadata: &Metadata) -> Result<(), Errno> {
        metadata.apply(&self.root)
    }

    fn folder(&mut self, last: &OsStr, metadata: &Metadata) -> Result<(), Errno> {
        let found = beneath::kind_of(self.here(), last)?;
        let is_folder = matches!(found, Some((FileType::Directory, _)));
        if !is_folder {
            self.remove_existing(last)?;
            rustix::fs::mkdirat(self.here(), last, Mode::from(0o700))?;
        }

        let inner = beneath::enter(self.here(), last)?;
        if matches!(found, Some((FileType::CharacterDevice, 0))) {
            // Removed and recreated in the same layer: opaque.
            rustix::fs::fsetxattr(&inner, OPAQUE_XATTR, b"y", XattrFlags::empty())?;
        }

        metadata.apply(&inner)?;

        // By its resolved path, which is what was implied.
        let path = self.open_folder().path.join(last);
        self.done.implied.remove(&path);
        self.times.push((path, metadata.times.clone()));
        self.done.bytes += BLOCK;

        Ok(())
    }

    fn file(
        &mut self,
        path: &Path,
        last: &OsStr,
        metadata: &Metadata,
        entry: &mut impl Read,
    ) -> Result<(), UnpackError> {
        let failed = |source| UnpackError::Entry {
            path: path.to_owned(),
            source,
        };
        let mut file = self.new_file(last).map_err(|errno| failed(errno.into()))?;

        let mut buffer = [0; 64 * 1024];
        let mut length = 0;
        loop {
            let read = entry.read(&mut buffer).map_err(UnpackError::Archive)?;
            if read == 0 {
                break;
            }
            let count = u64::try_from(read).expect("a buffer's length fits");
            self.count_bytes(count)?;
            length += count;
            file.write_all(&buffer[..read]).map_err(failed)?;
        }

        self.done.bytes += length.next_multiple_of(BLOCK);

        metadata.apply(&file).map_err(|errno| failed(errno.into()))
    }

    /// Unpacks a sparse file. Its holes count as written bytes: a copy would write them.
    fn sparse_file(
        &mut self,
        path: &Path,
        last: &OsStr,
        metadata: &Metadata,
        sparse: Sparse,
        entry: &mut Entry<'_, impl Read>,
    ) -> Result<(), UnpackError> {
        let failed = |source| UnpackError::Entry {
            path: path.to_owned(),
            source,
        };

        let (size, stored) = (sparse.size, entry.size());
        self.count_bytes(size)?;
        let pieces = sparse
            .pieces(entry, stored)
            .map_err(|source| UnpackError::Sparse {
                path: path.to_owned(),
                source,
            })?;

        let mut file = self.new_file(last).map_err(|errno| failed(errno.into()))?;
        for piece in pieces {
            file.seek(SeekFrom::Start(piece.at)).map_err(failed)?;
            let copied = io::copy(&mut entry.take(piece.length), &mut file).map_err(failed)?;
            if copied < piece.length {
                return Err(UnpackError::Archive(io::ErrorKind::UnexpectedEof.into()));
            }
            self.done.bytes += piece.length.next_multiple_of(BLOCK);
        }

        file.set_len(size).map_err(failed)?;

        metadata.apply(&file).map_err(|errno| failed(errno.into()))
    }

    /// Creates an empty file, replacing an existing entry.
    fn new_file(&mut self, last: &OsStr) -> Result<File, Errno> {
        self.remove_existing(last)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(
            self.here(),
            last,
            flags,
            Mode::from(0o600),
        )?))
    }

    fn count_bytes(&mut self, count: u64) -> Result<(), UnpackError> {
        self.written = self.written.saturating_add(count);
        if self.written > self.limits.bytes {
            Err(UnpackError::TooLarge(self.limits.bytes))
        } else {
            Ok(())
        }
    }

    /// Creates a hard link to a file of this layer. Symbolic links are not followed.
    fn hard_link(&mut self, target: &Path, last: &OsStr) -> Result<(), Errno> {
        let (folder, name) = split(target);
        let name = name.ok_or(Errno::PERM)?;
        let source = beneath::open_folder(&self.root, folder)?;
        match beneath::kind_of(&source, name)? {
            None => return Err(Errno::NOENT),
            // A hard link to a whiteout would be a whiteout.
            Some((FileType::CharacterDevice, 0)) => return Err(Errno::NOENT),
            Some(_) => {}
        }

        let same_place = {
            let (here, there) = (rustix::fs::fstat(self.here())?, rustix::fs::fstat(&source)?);
            (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) && name == last
        };

        if same_place {
            return Ok(());
        }

        self.remove_existing(last)?;

        rustix::fs::linkat(source, name, self.here(), last, AtFlags::empty())
    }

    fn symlink(&mut self, target: &OsStr, last: &OsStr, metadata: &Metadata) -> Result<(), Errno> {
        self.remove_existing(last)?;
        rustix::fs::symlinkat(target, self.here(), last)?;
        metadata.apply_to_name(self.here(), last)
    }

    fn node(
        &mut self,
        kind: EntryType,
        device: u64,
        last: &OsStr,
        metadata: &Metadata,
    ) -> Result<(), Errno> {
        let kind = match kind {
            EntryType::Char => FileType::CharacterDevice,
            EntryType::Block => FileType::BlockDevice,
            _ => FileType::Fifo,
        };
        self.remove_existing(last)?;
        rustix::fs::mknodat(self.here(), last, kind, metadata.mode, device)?;
        // Independent of the umask.
        rustix::fs::chmodat(self.here(), last, metadata.mode, AtFlags::empty())?;
        metadata.apply_to_name(self.here(), last)
    }
}

impl Metadata {
    fn of(entry: &mut Entry<'_, impl Read>) -> io::Result<Self> {
        let (mut xattrs, mut precise) = (Vec::new(), None);
        for extension in entry.pax_extensions()?.into_iter().flatten() {
            let extension = extension?;
            match extension.key() {
                Ok("mtime") => precise = extension.value().ok().and_then(seconds),
                Ok(key) => {
                    let name = key.strip_prefix(XATTR).filter(|name| is_kept(name));
                    xattrs.extend(
                        name.map(|name| (name.to_owned(), extension.value_bytes().to_vec())),
                    );
                }
                Err(_) => {}
            }
        }

        let header = entry.header();
        let fields = header.as_old();
        let id = |field: &[u8], found: io::Result<u64>| {
            u32::try_from(number(field, found)?).map_err(|_| io::Error::from(Errno::OVERFLOW))
        };

        let seconds = i64::try_from(number(&fields.mtime, header.mtime())?).unwrap_or(0);
        let time = precise.unwrap_or(Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        });

        let mode = id(&fields.mode, header.mode().map(u64::from))?;
        Ok(Self {
            uid: id(&fields.uid, header.uid())?,
            gid: id(&fields.gid, header.gid())?,
            mode: Mode::from(mode & 0o7777),
            times: Timestamps {
                last_access: time,
                last_modification: time,
            },
            xattrs,
        })
    }

    /// The owner first: chown clears setuid bits and capabilities.
    fn apply(&self, file: impl AsFd) -> Result<(), Errno> {
        let file = file.as_fd();
        rustix::fs::fchown(
            file,
            Some(Uid::from_raw(self.uid)),
            Some(Gid::from_raw(self.gid)),
        )?;

        rustix::fs::fchmod(file, self.mode)?;

        for (name, value) in &self.xattrs {
            match rustix::fs::fsetxattr(file, name.as_str(), value, XattrFlags::empty()) {
                // Not every filesystem supports every attribute; upstream ignores this too.
                Ok(()) | Err(Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(errno),
            }
        }

        rustix::fs::futimens(file, &self.times)
    }

    fn apply_to_name(&self, folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
        let owner = (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)));
        rustix::fs::chownat(folder, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
        rustix::fs::utimensat(folder, name, &self.times, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// The extended attributes that are kept. Overlay's own must not be set by an image.
fn is_kept(name: &str) -> bool {
    let is_users = name.starts_with("user.") && !name.starts_with("user.overlay.");
    is_users || name == "security.capability" || name.starts_with("system.posix_acl_")
}

fn as_path(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name))
}

/// An empty header field is zero.
fn number(field: &[u8], found: io::Result<u64>) -> io::Result<u64> {
    if field.iter().all(|byte| matches!(byte, 0 | b' ')) {
        Ok(0)
    } else {
        found
    }
}

/// Parses `seconds.fraction` of extended headers.
fn seconds(text: &str) -> Option<Timespec> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    Some(Timespec {
        tv_sec: whole.parse().ok()?,
        tv_nsec: digits.parse().ok()?,
    })
}
