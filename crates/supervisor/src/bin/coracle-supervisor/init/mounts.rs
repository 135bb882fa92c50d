//! Mounts of a container, all done by descriptors.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{Bind, ContainerSpec, Filesystem, MountSpec, Propagation};
use rustix::fs::{CWD, FileType, fstatfs};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::filesystems::{self, NewFilesystems};
use super::null;
use super::root::{self, Root};
use crate::step::{During as _, StepError};
use crate::sys;

/// Files in `/proc` that may be mounted over, as lxcfs does.
const PROC_FILES: [&str; 10] = [
    "/proc/cpuinfo",
    "/proc/diskstats",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/slabinfo",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/crypto/fips_enabled",
];

/// Mounts everything, and returns the new filesystems.
pub(super) fn make<'s>(
    root: &Root,
    spec: &'s ContainerSpec,
) -> Result<NewFilesystems<'s>, StepError> {
    let mut filesystems = NewFilesystems::default();
    for (number, mount) in spec.mounts.iter().enumerate() {
        match mount {
            MountSpec::Bind { bind } => make_bind(root, bind)?,
            MountSpec::New { filesystem } => {
                filesystems.add(filesystem, make_new(root, spec, number, filesystem)?)
            }
            // Created with its filesystem.
            MountSpec::Link { .. } => {}
        }
    }

    Ok(filesystems)
}

fn make_bind(root: &Root, bind: &Bind) -> Result<(), StepError> {
    let step = || format!("mount {} at {}", bind.source, bind.target);
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if bind.recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }

    let tree = open_tree(CWD, bind.source.as_str(), flags).during(step)?;

    let propagation = match bind.propagation {
        Propagation::Private {} => libc::MS_PRIVATE,
        Propagation::Slave {} => libc::MS_SLAVE,
        Propagation::Shared {} => libc::MS_SHARED,
    };
    sys::mount_setattr(tree.as_fd(), 0, propagation, bind.recursive).during(step)?;

    let readonly = if bind.readonly {
        libc::MOUNT_ATTR_RDONLY
    } else {
        0
    };

    if bind.attributes | readonly != 0 {
        sys::mount_setattr(
            tree.as_fd(),
            bind.attributes | readonly,
            0,
            bind.recursive_readonly,
        )
        .during(step)?;
    }

    let is_folder = root::kind(&tree).during(step)? == FileType::Directory;
    let target = if is_folder {
        root.folder(&bind.target)?
    } else {
        root.file(&bind.target)?
    };

    // Masking and read-only paths rely on the real `/proc`.
    let covers_proc = is_proc(&target).during(step)? && !PROC_FILES.contains(&bind.target.as_str());
    if covers_proc && !is_proc(&tree).during(step)? {
        return Err(StepError::new(
            format!("{}, which is inside /proc", step()),
            Errno::PERM,
        ));
    }

    attach(&tree, &target).during(step)
}

fn is_proc(file: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(fstatfs(file)?.f_type == libc::PROC_SUPER_MAGIC)
}

fn make_new(
    root: &Root,
    spec: &ContainerSpec,
    number: usize,
    filesystem: &Filesystem,
) -> Result<OwnedFd, StepError> {
    let step = || format!("mount {} at {}", filesystem.kind, filesystem.target);
    let mount = new_mount(filesystem).during(step)?;
    filesystems::populate(&mount, spec, number)?;

    // Programs trust these to be the kernel's.
    let trusted = matches!(filesystem.kind.as_str(), "proc" | "sysfs");
    let target = if trusted {
        root.plain_folder(&filesystem.target)?
    } else {
        root.folder(&filesystem.target)?
    };
    attach(&mount, &target).during(step)?;

    Ok(mount)
}

pub(super) fn new_mount(filesystem: &Filesystem) -> rustix::io::Result<OwnedFd> {
    let context = fsopen(filesystem.kind.as_str(), FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in &filesystem.options {
        if value.is_empty() {
            fsconfig_set_flag(context.as_fd(), name.as_str())?;
        } else {
            fsconfig_set_string(context.as_fd(), name.as_str(), value.as_str())?;
        }
    }

    fsconfig_create(context.as_fd())?;
    let attributes = u32::try_from(filesystem.attributes).map_err(|_| Errno::INVAL)?;

    fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::from_bits_retain(attributes),
    )
}

/// Masks paths, so that they cannot be read.
pub(super) fn mask(
    root: &Root,
    filesystems: &NewFilesystems<'_>,
    paths: &[String],
) -> Result<(), StepError> {
    for path in paths {
        let Some(target) = root.find_plain(path)? else {
            continue;
        };

        let step = || format!("mask {path}");
        let cover = if root::kind(&target).during(step)? == FileType::Directory {
            new_mount(&Filesystem {
                kind: "tmpfs".to_owned(),
                options: vec![("size".to_owned(), "0".to_owned())],
                attributes: libc::MOUNT_ATTR_RDONLY,
                ..Filesystem::default()
            })
        } else {
            null::cover(filesystems)
        };
        attach(&cover.during(step)?, &target).during(step)?;
    }

    Ok(())
}

/// Makes paths read-only, by mounting them over themselves.
pub(super) fn make_readonly(root: &Root, paths: &[String]) -> Result<(), StepError> {
    for path in paths {
        let Some(target) = root.find_plain(path)? else {
            continue;
        };
        let step = || format!("make {path} read-only");

        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = open_tree(target.as_fd(), "", flags).during(step)?;
        sys::mount_setattr(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, 0, true).during(step)?;
        attach(&tree, &target).during(step)?;
    }

    Ok(())
}

fn attach(mount: &OwnedFd, target: &OwnedFd) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.as_fd(), "", target.as_fd(), "", flags)
}
