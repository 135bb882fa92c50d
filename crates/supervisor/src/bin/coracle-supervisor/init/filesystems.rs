//! New filesystems of a container, and what is created in them: device nodes, links, the mount
//! point of the console.
//!
//! A volume may be modified concurrently by its owner. So nothing is ever created in one: entries
//! are created in the root filesystem before anything is mounted in it, or in a new filesystem
//! before it is attached, where no other process can see it. The content of volumes stays
//! untouched. Later a new filesystem is accessed by its descriptor only, whatever has been mounted
//! over it meanwhile.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path};

use coracle_supervisor::protocol::{ContainerSpec, Device, Filesystem, MountSpec};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, makedev, mkdirat, mknodat,
    openat, openat2, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::root::Root;
use crate::step::{During as _, StepError};
use crate::sys;

pub(super) const DEV: &str = "/dev";
pub(super) const PTS: &str = "/dev/pts";
const CONSOLE: &str = "/dev/console";

/// The new filesystems of a container, in mount order.
#[derive(Default)]
pub(super) struct NewFilesystems<'s>(Vec<(&'s Filesystem, OwnedFd)>);

impl<'s> NewFilesystems<'s> {
    pub(super) fn add(&mut self, filesystem: &'s Filesystem, mount: OwnedFd) {
        self.0.push((filesystem, mount));
    }

    /// Opens a file in the new filesystem of a mount point; none if there is none.
    pub(super) fn open(
        &self,
        target: &str,
        name: &str,
        flags: OFlags,
    ) -> Option<rustix::io::Result<OwnedFd>> {
        let (_, mount) = self
            .0
            .iter()
            .rfind(|(filesystem, _)| filesystem.target == target)?;

        let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV | ResolveFlags::BENEATH;
        Some(openat2(
            mount,
            name,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            how,
        ))
    }

    /// Makes filesystems read-only that needed mounts inside first.
    pub(super) fn seal(&self) -> Result<(), StepError> {
        for (filesystem, mount) in self.0.iter().filter(|(filesystem, _)| filesystem.seal) {
            sys::mount_setattr(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, 0, false)
                .during(|| format!("make {} read-only", filesystem.target))?;
        }
        Ok(())
    }
}

/// Creates devices in the root filesystem, before anything is mounted in it.
pub(super) fn populate_root(root: &Root, spec: &ContainerSpec) -> Result<(), StepError> {
    for device in spec
        .devices
        .iter()
        .filter(|device| covering(&device.path, &spec.mounts).is_none())
    {
        let (folder, name) = root.parent(&device.path)?;
        make_device(&folder, name, device)?;
    }
    Ok(())
}

/// Creates devices and links in a new filesystem, the `number`th of the mounts, before it is
/// attached.
pub(super) fn populate(
    mount: &OwnedFd,
    spec: &ContainerSpec,
    number: usize,
) -> Result<(), StepError> {
    let belongs = |path: &str| covering(path, &spec.mounts) == Some(number);
    for device in spec.devices.iter().filter(|device| belongs(&device.path)) {
        let (folder, name) = parent_in(mount, &device.path, &spec.mounts[number])?;
        make_device(&folder, name, device)?;
    }

    for link in &spec.mounts {
        let MountSpec::Link { path, target } = link else {
            continue;
        };
        if belongs(path) {
            let (folder, name) = parent_in(mount, path, &spec.mounts[number])?;
            match symlinkat(target.as_str(), folder, name) {
                // The container has a device of that name.
                Err(Errno::EXIST) => {}
                made => made.during(|| format!("link {path} to {target}"))?,
            }
        }
    }

    if spec.process.terminal && belongs(CONSOLE) {
        let (folder, name) = parent_in(mount, CONSOLE, &spec.mounts[number])?;
        match mknodat(
            folder,
            name,
            FileType::RegularFile,
            Mode::from_raw_mode(0o600),
            0,
        ) {
            // The container may have a device of that name.
            Err(Errno::EXIST) => {}
            made => made.during(|| format!("create {CONSOLE}"))?,
        }
    }

    Ok(())
}

/// The index of the mount that contains a path; none for the root filesystem.
fn covering(path: &str, mounts: &[MountSpec]) -> Option<usize> {
    let around = mounts.iter().enumerate().filter_map(|(number, mount)| {
        let target = Path::new(target(mount)?);
        Path::new(path)
            .starts_with(target)
            .then(|| (target.components().count(), number))
    });
    // Of two at the same path the later one is on top.
    around.max().map(|(_, number)| number)
}

fn target(mount: &MountSpec) -> Option<&str> {
    match mount {
        MountSpec::Bind { bind } => Some(&bind.target),
        MountSpec::New { filesystem } => Some(&filesystem.target),
        MountSpec::Link { .. } => None,
    }
}

/// Creates and opens the parent folder of a path in a new filesystem. Returns it with the last
/// name.
fn parent_in<'p>(
    mount: &OwnedFd,
    path: &'p str,
    at: &MountSpec,
) -> Result<(OwnedFd, &'p str), StepError> {
    let step = || format!("create the parent of {path}");
    let inside = Path::new(path).strip_prefix(target(at).unwrap_or_default());
    let mut names = Vec::new();
    for name in inside.unwrap_or(Path::new("")).components() {
        match name {
            Component::Normal(name) => names.extend(name.to_str()),
            _ => return Err(StepError::new(step(), Errno::INVAL)),
        }
    }

    let last = names
        .pop()
        .ok_or_else(|| StepError::new(step(), Errno::INVAL))?;

    let mut here = mount.try_clone().during(step)?;
    for name in names {
        match mkdirat(&here, name, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => {}
            made => made.during(step)?,
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        here = openat(&here, name, flags, Mode::empty()).during(step)?;
    }

    Ok((here, last))
}

/// Requires an empty umask.
fn make_device(folder: &OwnedFd, name: &str, device: &Device) -> Result<(), StepError> {
    let step = || format!("create device {}", device.path);
    let kind = match device.kind {
        b'b' => FileType::BlockDevice,
        b'p' => FileType::Fifo,
        _ => FileType::CharacterDevice,
    };

    let (mode, number) = (
        Mode::from_raw_mode(device.mode),
        makedev(device.major, device.minor),
    );

    match mknodat(folder, name, kind, mode, number) {
        // The image may contain another file of that name: replace it.
        Err(Errno::EXIST) => {
            unlinkat(folder, name, AtFlags::empty()).during(step)?;
            mknodat(folder, name, kind, mode, number).during(step)?;
        }
        made => made.during(step)?,
    }

    let (uid, gid) = (Uid::from_raw(device.uid), Gid::from_raw(device.gid));
    chownat(
        folder,
        name,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    )
    .during(step)
}

#[cfg(test)]
mod tests {
    use coracle_supervisor::protocol::Bind;

    use super::*;

    #[test]
    fn a_path_is_in_the_innermost_mount_and_the_last_one_there() {
        let new = |target: &str| MountSpec::New {
            filesystem: Filesystem {
                target: target.to_owned(),
                ..Filesystem::default()
            },
        };

        let bind = |target: &str| MountSpec::Bind {
            bind: Bind {
                target: target.to_owned(),
                ..Bind::default()
            },
        };

        let link = MountSpec::Link {
            path: "/dev/fd".to_owned(),
            target: "/proc/self/fd".to_owned(),
        };

        let mounts = [
            new("/dev"),
            new("/dev/pts"),
            link,
            bind("/data/"),
            new("/run"),
            bind("/run"),
        ];

        let check = |path: &str, expected: Option<usize>| {
            assert_eq!(covering(path, &mounts), expected, "{path}")
        };
        check("/dev/null", Some(0));
        check("/dev/fd", Some(0));
        check("/dev/pts/x", Some(1));

        check("/devices/x", None);
        check("/x", None);
        check("/data/x", Some(3));
        check("/run/x", Some(5));
    }
}
