//! Overlay mounts through the fsopen/fsconfig API: layers are added one by one, so that their
//! number is not limited by one page of mount options.

use std::io;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

/// Mounts an overlay of `layers`, the highest first, with a writable one on top.
pub(super) fn mount(
    layers: &[impl AsRef<Path>],
    upper: &Path,
    work: &Path,
    at: &Path,
) -> io::Result<()> {
    match mount_one_by_one(layers, upper, work, at) {
        // Kernels before 6.8 accept layers only in one option. Some fail when a layer is added,
        // those before 6.5 on create.
        Err(Errno::INVAL) => mount_at_once(layers, upper, work, at),
        mounted => Ok(mounted?),
    }
}

fn mount_one_by_one(
    layers: &[impl AsRef<Path>],
    upper: &Path,
    work: &Path,
    at: &Path,
) -> Result<(), Errno> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "overlay")?;

    for layer in layers {
        fsconfig_set_string(&context, "lowerdir+", layer.as_ref())?;
    }

    fsconfig_set_string(&context, "upperdir", upper)?;
    fsconfig_set_string(&context, "workdir", work)?;
    fsconfig_create(&context)?;

    let mount = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;

    move_mount(mount, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn mount_at_once(
    layers: &[impl AsRef<Path>],
    upper: &Path,
    work: &Path,
    at: &Path,
) -> io::Result<()> {
    let lower: Vec<String> = layers
        .iter()
        .map(|layer| layer.as_ref().display().to_string())
        .collect();

    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.join(":"),
        upper.display(),
        work.display()
    );

    let options = std::ffi::CString::new(options).map_err(io::Error::other)?;
    Ok(rustix::mount::mount(
        "overlay",
        at,
        "overlay",
        rustix::mount::MountFlags::empty(),
        options.as_c_str(),
    )?)
}

/// Detaches the mount, even if in use. Not being mounted is no error.
pub(super) fn unmount_if_mounted(at: &Path) -> io::Result<()> {
    match unmount(at, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether something is mounted here: the device differs from that of the parent.
pub(super) fn is_mounted(at: &Path) -> io::Result<bool> {
    let here = rustix::fs::stat(at)?;
    let above = rustix::fs::stat(at.join(".."))?;
    Ok(here.st_dev != above.st_dev)
}
