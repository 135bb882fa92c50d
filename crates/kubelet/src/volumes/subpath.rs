//! Subpaths of volumes (`subPath`), without escaping the volume.
//!
//! A process with write access to the volume may create links at any time, also between two system
//! calls. So the path is resolved once, must be inside the volume, and is then opened relative to
//! the volume's directory with links refused; the open file is bind-mounted to a path of the
//! kubelet, which the container gets.

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

/// Why a subpath cannot be mounted. The cause is only logged.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubPathError {
    #[error("cannot create subPath: {0}")]
    Create(io::Error),
    #[error("cannot bind subPath: {0}")]
    Prepare(io::Error),
}

/// Identifies a mount of a container.
pub(super) struct Location<'a> {
    pub(super) layout: &'a Layout,
    pub(super) uid: &'a str,
    pub(super) container: &'a str,
    pub(super) index: usize,
}

impl Location<'_> {
    fn path(&self, volume: &str) -> PathBuf {
        self.layout
            .volume_subpaths(self.uid)
            .join(volume)
            .join(self.container)
            .join(self.index.to_string())
    }
}

/// Creates the missing directories of a subpath, with the mode of the volume.
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
                // The umask may have removed bits.
                fchmod(&made, mode)?;
                made
            }
            entered => entered?,
        };
    }

    Ok(())
}

/// Bind-mounts a subpath to a path of the kubelet, and returns that path. An existing mount of an
/// earlier instance is kept if it is the same.
pub(super) fn prepare(
    volume: &Path,
    name: &str,
    below: &str,
    location: &Location<'_>,
) -> io::Result<PathBuf> {
    let part = open_part(volume, below)?;
    let found = fstat(&part)?;

    let target = location.path(name);
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

/// Opens a file below a volume for reading.
pub(super) fn open_file(volume: &Path, below: &str) -> io::Result<File> {
    coracle_files::read::regular(&open_part(volume, below)?)
}

/// Opens a path below a volume with `O_PATH`.
fn open_part(volume: &Path, below: &str) -> io::Result<OwnedFd> {
    let volume = volume.canonicalize()?;
    let resolved = volume.join(below).canonicalize()?;
    let inside = resolved.strip_prefix(&volume).map_err(|_| {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} is outside the volume", resolved.display()),
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
    // A volume may be a file of the host; then opening a path below it fails.
    Ok(open(
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?)
}

/// Opens a directory in a directory. Links are followed only if they stay inside, one component at
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

    // An earlier instance may have had the other type here.
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
