//! Parts of volumes (`subPath`), reached without being led out of them.
//!
//! Whoever may write into a volume may put a link there at any moment, also between two looks of
//! ours. So the path is resolved once, must lie within the volume, and is then opened part by part
//! from the volume's own folder with links refused; what is open is bound to a place of the
//! kubelet's own, and that is what a container gets.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, open, openat2};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::mount_table::is_mount_point;
use crate::layout::Layout;

/// Why a part of a volume cannot be mounted. What happened is for the log alone.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubPathError {
    #[error("cannot be created: {0}")]
    Create(io::Error),
    #[error("cannot be prepared: {0}")]
    Prepare(io::Error),
}

/// Whose mount it is: the container's, and which of its mounts.
pub(super) struct Place<'a> {
    pub(super) layout: &'a Layout,
    pub(super) uid: &'a str,
    pub(super) container: &'a str,
    pub(super) index: usize,
}

impl Place<'_> {
    fn path(&self, volume: &str) -> PathBuf {
        self.layout
            .volume_subpaths(self.uid)
            .join(volume)
            .join(self.container)
            .join(self.index.to_string())
    }
}

/// Makes the folders on the way to a part of a volume, where they are missing, with the volume's
/// own mode.
pub(super) fn ensure(volume: &Path, below: &str) -> io::Result<()> {
    if fs::metadata(volume.join(below)).is_ok() {
        return Ok(());
    }

    let volume = volume.canonicalize()?;
    let mode = Mode::from_raw_mode(fs::metadata(&volume)?.mode() & 0o7777);

    let mut folder = open_folder(&volume)?;
    for part in Path::new(below).components() {
        let part = part.as_os_str();
        folder = match enter(&folder, part) {
            Err(Errno::NOENT) => {
                mkdirat(&folder, part, mode)?;
                let made = enter(&folder, part)?;
                // The umask may have taken something off.
                fchmod(&made, mode)?;
                made
            }
            entered => entered?,
        };
    }

    Ok(())
}

/// Binds a part of a volume to a place of the kubelet's own, and says where that is. What was bound
/// there for an earlier instance of the container is kept if it is the same.
pub(super) fn prepare(
    volume: &Path,
    name: &str,
    below: &str,
    place: &Place<'_>,
) -> io::Result<PathBuf> {
    let part = open_part(volume, below)?;
    let found = fstat(&part)?;

    let target = place.path(name);
    if is_mount_point(&target)? {
        let bound = fs::symlink_metadata(&target)?;
        if (bound.dev(), bound.ino()) == (found.st_dev, found.st_ino) {
            return Ok(target);
        }
        unmount(&target, UnmountFlags::NOFOLLOW)?;
    }

    make_target(
        &target,
        rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir(),
    )?;

    let opened = format!("/proc/self/fd/{}", part.as_raw_fd());
    if let Err(error) = mount_bind(opened, &target) {
        remove_target(&target)?;
        return Err(error.into());
    }

    Ok(target)
}

/// A file below a volume, open for reading.
pub(super) fn open_file(volume: &Path, below: &str) -> io::Result<File> {
    coracle_files::read::regular(&open_part(volume, below)?)
}

/// Finds a part of a volume, of whatever kind, without opening it.
fn open_part(volume: &Path, below: &str) -> io::Result<OwnedFd> {
    let volume = volume.canonicalize()?;
    let resolved = volume.join(below).canonicalize()?;
    let inside = resolved.strip_prefix(&volume).map_err(|_| {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} leads out of the volume", resolved.display()),
        )
    })?;

    let folder = open_folder(&volume)?;
    let inside = if inside.as_os_str().is_empty() {
        Path::new(".")
    } else {
        inside
    };

    let no_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;

    Ok(openat2(&folder, inside, flags, Mode::empty(), no_links)?)
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    // A volume may be a file of the host's; then there is nothing below it, and opening what is
    // below says so.
    Ok(open(
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?)
}

/// Opens a folder that is in a folder. Links are followed as long as they stay inside, one part at
/// a time.
fn enter(folder: &OwnedFd, part: &std::ffi::OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(
        folder,
        part,
        flags,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    )
}

fn make_target(target: &Path, is_folder: bool) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(parent)?;
    }

    // What an earlier instance had here may have been of the other kind.
    remove_target(target)?;

    if is_folder {
        DirBuilder::new().mode(0o750).create(target)
    } else {
        fs::write(target, "")
    }
}

fn remove_target(target: &Path) -> io::Result<()> {
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => fs::remove_dir(target),
        Ok(_) => fs::remove_file(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
