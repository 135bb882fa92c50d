//! What is mounted in a container, each by descriptors from end to end.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{Bind, Filesystem, MountSpec, Propagation};
use rustix::fs::{CWD, FileType, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::root::{self, Root};
use crate::step::{During as _, StepError};
use crate::sys;

pub(super) fn make(root: &Root, mounts: &[MountSpec]) -> Result<(), StepError> {
    for mount in mounts {
        match mount {
            MountSpec::Bind { bind } => make_bind(root, bind)?,
            MountSpec::New { filesystem } => make_new(root, filesystem)?,
            MountSpec::Link { path, target } => make_link(root, path, target)?,
        }
    }
    Ok(())
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
    let readonly = if bind.readonly { libc::MOUNT_ATTR_RDONLY } else { 0 };
    if bind.attributes | readonly != 0 {
        sys::mount_setattr(tree.as_fd(), bind.attributes | readonly, 0, bind.recursive_readonly)
            .during(step)?;
    }
    let is_folder = root::kind(&tree).during(step)? == FileType::Directory;
    let target = if is_folder { root.folder(&bind.target)? } else { root.file(&bind.target)? };
    attach(&tree, &target).during(step)
}

fn make_new(root: &Root, filesystem: &Filesystem) -> Result<(), StepError> {
    let step = || format!("mount {} at {}", filesystem.kind, filesystem.target);
    let mount = new_mount(filesystem).during(step)?;
    // Whoever reads these trusts that they are the kernel's.
    let trusted = matches!(filesystem.kind.as_str(), "proc" | "sysfs");
    let target =
        if trusted { root.plain_folder(&filesystem.target)? } else { root.folder(&filesystem.target)? };
    attach(&mount, &target).during(step)
}

fn new_mount(filesystem: &Filesystem) -> rustix::io::Result<OwnedFd> {
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
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::from_bits_retain(attributes))
}

fn make_link(root: &Root, path: &str, target: &str) -> Result<(), StepError> {
    let (folder, name) = root.parent(path)?;
    match symlinkat(target, folder, name) {
        Err(Errno::EXIST) => Ok(()),
        other => other.during(|| format!("link {path} to {target}")),
    }
}

/// Makes filesystems read-only in which something had to be mounted first.
pub(super) fn seal(root: &Root, mounts: &[MountSpec]) -> Result<(), StepError> {
    for mount in mounts {
        let MountSpec::New { filesystem } = mount else { continue };
        if !filesystem.seal {
            continue;
        }
        let target = root.folder(&filesystem.target)?;
        sys::mount_setattr(target.as_fd(), libc::MOUNT_ATTR_RDONLY, 0, false)
            .during(|| format!("make {} read-only", filesystem.target))?;
    }
    Ok(())
}

/// Covers paths, so that nothing of them can be read.
pub(super) fn hide(root: &Root, paths: &[String]) -> Result<(), StepError> {
    for path in paths {
        let Some(target) = root.find(path)? else { continue };
        let step = || format!("mask {path}");
        let cover = if root::kind(&target).during(step)? == FileType::Directory {
            new_mount(&Filesystem {
                kind: "tmpfs".to_owned(),
                options: vec![("size".to_owned(), "0".to_owned())],
                attributes: libc::MOUNT_ATTR_RDONLY,
                ..Filesystem::default()
            })
        } else {
            // The container's own: it is to see nothing of the host's, not even this.
            let null = root.find("/dev/null")?.ok_or_else(|| StepError::new(step(), Errno::NOENT))?;
            let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            open_tree(null.as_fd(), "", flags | OpenTreeFlags::AT_EMPTY_PATH)
        };
        attach(&cover.during(step)?, &target).during(step)?;
    }
    Ok(())
}

/// Makes paths read-only, by mounting them over themselves.
pub(super) fn freeze(root: &Root, paths: &[String]) -> Result<(), StepError> {
    for path in paths {
        let Some(target) = root.find(path)? else { continue };
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
