//! A container's root filesystem: cloned into a private mount, path resolution in it, and
//! pivot_root.
//!
//! Every path inside it is resolved against its root by descriptors, so that neither a symbolic
//! link nor `..` nor a concurrent rename leads to the host.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{ContainerSpec, Propagation};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, readlinkat,
    statat,
};
use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount_change, move_mount,
    open_tree, unmount,
};

use crate::step::{During as _, StepError};
use crate::sys;

/// The kernel's limit of links.
const MOST_LINKS: usize = 40;

/// The root of the container, in the host's mount namespace view.
pub(super) struct Root {
    folder: OwnedFd,
}

/// Clones the root filesystem into a private mount in this process' mount namespace.
pub(super) fn prepare(spec: &ContainerSpec) -> Result<Root, StepError> {
    // Later mounts of the host propagate in (slave); mounts propagate back only if shared
    // explicitly.
    let base = match spec.propagation {
        Propagation::Shared {} => MountPropagationFlags::SHARED,
        Propagation::Private {} | Propagation::Slave {} => MountPropagationFlags::DOWNSTREAM,
    };

    mount_change("/", base | MountPropagationFlags::REC)
        .during(|| "set the propagation of mounts".to_owned())?;

    // pivot_root requires a private parent mount.
    mount_change(spec.rootfs.as_str(), MountPropagationFlags::PRIVATE)
        .during(|| format!("make mount {} private", spec.rootfs))?;
    let tree = open_tree(
        CWD,
        spec.rootfs.as_str(),
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
    )
    .during(|| format!("open {}", spec.rootfs))?;

    sys::mount_setattr(tree.as_fd(), 0, libc::MS_PRIVATE, false)
        .during(|| "make the root filesystem private".to_owned())?;
    move_mount(
        tree.as_fd(),
        "",
        CWD,
        spec.rootfs.as_str(),
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .during(|| format!("mount {}", spec.rootfs))?;

    let folder = rustix::fs::open(
        spec.rootfs.as_str(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    );

    Ok(Root {
        folder: folder.during(|| format!("open {}", spec.rootfs))?,
    })
}

impl Root {
    /// Opens a path, if it exists.
    pub(super) fn find(&self, path: &str) -> Result<Option<OwnedFd>, StepError> {
        match self.open(path, ResolveFlags::empty()) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(StepError::new(
                format!("resolve {path} in the container"),
                errno,
            )),
        }
    }

    /// Opens a path that contains no links, if it exists. For mounts over the kernel's own files:
    /// where a volume hides them, a link in it could lead anywhere.
    pub(super) fn find_plain(&self, path: &str) -> Result<Option<OwnedFd>, StepError> {
        match self.open(path, ResolveFlags::NO_SYMLINKS) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(StepError::new(
                format!("find {path} in the container without links"),
                errno,
            )),
        }
    }

    /// Opens the folder at a path, creating it and its parents if missing.
    pub(super) fn folder(&self, path: &str) -> Result<OwnedFd, StepError> {
        match self.find(path)? {
            Some(found) => Ok(found),
            None => self.make(path, false),
        }
    }

    /// Opens the file at a path, creating it and its parents if missing.
    pub(super) fn file(&self, path: &str) -> Result<OwnedFd, StepError> {
        match self.find(path)? {
            Some(found) => Ok(found),
            None => self.make(path, true),
        }
    }

    /// Opens the folder at a path without following links: what is mounted there is trusted.
    pub(super) fn plain_folder(&self, path: &str) -> Result<OwnedFd, StepError> {
        match self.open(path, ResolveFlags::NO_SYMLINKS) {
            Ok(found) => Ok(found),
            Err(Errno::NOENT) => self.make(path, false),
            Err(errno) => Err(StepError::new(
                format!("resolve {path} in the container without symlinks"),
                errno,
            )),
        }
    }

    /// The parent folder of a path, and the last name.
    pub(super) fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), StepError> {
        let path = path.trim_end_matches('/');
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if matches!(name, "" | "." | "..") {
            return Err(StepError::new(
                format!("resolve the parent of {path}"),
                Errno::INVAL,
            ));
        }

        Ok((
            self.folder(if above.is_empty() { "/" } else { above })?,
            name,
        ))
    }

    fn open(&self, path: &str, how: ResolveFlags) -> rustix::io::Result<OwnedFd> {
        let how = how | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let path = if path.is_empty() { "/" } else { path };

        // The kernel asks to retry after a concurrent rename.
        loop {
            match openat2(
                &self.folder,
                path,
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
                how,
            ) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
    }

    /// Walks a path name by name, following links within the root, and creates what is missing.
    fn make(&self, path: &str, file: bool) -> Result<OwnedFd, StepError> {
        let step = || format!("create {path} in the container");
        let mut above: Vec<OwnedFd> = Vec::new();
        let mut here = self.folder.try_clone().during(step)?;
        let mut names: VecDeque<String> = split(path).collect();

        let mut links = 0;
        while let Some(name) = names.pop_front() {
            if name == ".." {
                here = above
                    .pop()
                    .map_or_else(|| self.folder.try_clone(), Ok)
                    .during(step)?;
                continue;
            }

            let last_is_file = file && names.is_empty();
            match enter_or_make(&here, &name, last_is_file).during(step)? {
                Entered::There(next) => above.push(std::mem::replace(&mut here, next)),
                Entered::Link(target) => {
                    links += 1;

                    if links > MOST_LINKS {
                        return Err(StepError::new(step(), Errno::LOOP));
                    }

                    if target.starts_with('/') {
                        above.clear();
                        here = self.folder.try_clone().during(step)?;
                    }

                    names = split(&target).chain(names).collect();
                }
            }
        }

        Ok(here)
    }
}

fn split(path: &str) -> impl Iterator<Item = String> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
        .map(str::to_owned)
}

enum Entered {
    There(OwnedFd),
    Link(String),
}

fn enter_or_make(here: &OwnedFd, name: &str, file: bool) -> rustix::io::Result<Entered> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match openat(here, name, flags, Mode::empty()) {
        Err(Errno::NOENT) if file => {
            let new =
                OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(here, name, new, Mode::from_raw_mode(0o644))?;
            openat(here, name, flags, Mode::empty())?
        }
        Err(Errno::NOENT) => {
            mkdirat(here, name, Mode::from_raw_mode(0o755))?;
            openat(here, name, flags, Mode::empty())?
        }
        other => other?,
    };

    if kind(&found)? != FileType::Symlink {
        return Ok(Entered::There(found));
    }

    let target = readlinkat(&found, "", Vec::new())?;
    target
        .into_string()
        .map(Entered::Link)
        .map_err(|_| Errno::ILSEQ)
}

/// The file type of a descriptor.
pub(super) fn kind(file: &OwnedFd) -> rustix::io::Result<FileType> {
    Ok(FileType::from_raw_mode(
        statat(file, "", AtFlags::EMPTY_PATH)?.st_mode,
    ))
}

/// Makes it the root of this process, and detaches the host's tree.
pub(super) fn pivot(root: &Root) -> Result<(), StepError> {
    let step = || "pivot_root into the root filesystem".to_owned();
    let host = rustix::fs::open(
        "/",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .during(step)?;

    rustix::process::fchdir(&root.folder).during(step)?;
    rustix::process::pivot_root(".", ".").during(step)?;
    rustix::process::fchdir(&host).during(step)?;

    // The unmount must not propagate to the host.
    mount_change(
        ".",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )
    .during(step)?;

    unmount(".", UnmountFlags::DETACH).during(step)?;

    rustix::process::chdir("/").during(step)
}

/// Sets propagation and read-only of the root, after everything in it is created.
pub(super) fn finish(spec: &ContainerSpec) -> Result<(), StepError> {
    let propagation = match spec.propagation {
        Propagation::Private {} => None,
        Propagation::Slave {} => Some(MountPropagationFlags::DOWNSTREAM),
        Propagation::Shared {} => Some(MountPropagationFlags::SHARED),
    };

    if let Some(propagation) = propagation {
        mount_change("/", propagation).during(|| "set the propagation of the root".to_owned())?;
    }

    if spec.readonly_root {
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .during(|| "open the root".to_owned())?;
        sys::mount_setattr(root.as_fd(), libc::MOUNT_ATTR_RDONLY, 0, false)
            .during(|| "make the root read-only".to_owned())?;
    }

    Ok(())
}
