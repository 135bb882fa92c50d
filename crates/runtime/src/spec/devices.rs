//! Devices: the nodes a container gets, and the device cgroup rules.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use coracle_cgroup::{Access, DeviceKind, DeviceRule};
use coracle_cri::v1::ContainerConfig;
use coracle_supervisor::protocol::Device;

use super::mounts::{DEV, clean_path, has_mount_at};
use crate::error::Error;

/// Devices of every container: name, major, minor.
const USUAL: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// The device nodes to create. None if a volume is mounted at `/dev`, as in other runtimes.
pub(crate) fn nodes(config: &ContainerConfig, privileged: bool) -> Result<Vec<Device>, Error> {
    if has_mount_at(config, DEV) {
        return Ok(Vec::new());
    }

    let mut nodes: Vec<Device> = USUAL
        .iter()
        .map(|(name, major, minor)| Device {
            path: format!("/dev/{name}"),
            kind: b'c',
            major: *major,
            minor: *minor,
            mode: 0o666,
            uid: 0,
            gid: 0,
        })
        .collect();

    let host = if privileged {
        host_devices(Path::new("/dev"))
    } else {
        Vec::new()
    };

    let wanted = config
        .devices
        .iter()
        .map(|device| (device.host_path.clone(), device.container_path.clone()));

    for (source, target) in host
        .into_iter()
        .map(|path| (path.clone(), path))
        .chain(wanted)
    {
        let device = node(&source, &target)?;
        // It is a link to the container's own `pts/ptmx`.
        if device.path == "/dev/ptmx" {
            continue;
        }
        nodes.retain(|known| known.path != device.path);
        nodes.push(device);
    }

    Ok(nodes)
}

/// The device cgroup rules. As in other runtimes, mknod is allowed for every device; opening is
/// not.
pub(crate) fn rules(config: &ContainerConfig, privileged: bool) -> Result<Vec<DeviceRule>, Error> {
    if privileged {
        return Ok(vec![DeviceRule::ALL]);
    }

    let any = |kind| DeviceRule {
        kind,
        major: None,
        minor: None,
        access: Access::MAKE,
    };

    let character = |major, minor: Option<u32>| DeviceRule {
        kind: DeviceKind::Character,
        major: Some(major),
        minor,
        access: Access::ALL,
    };

    let mut rules = vec![any(DeviceKind::Character), any(DeviceKind::Block)];
    rules.extend(
        USUAL
            .iter()
            .map(|(_, major, minor)| character(*major, Some(*minor))),
    );

    // Terminals: /dev/console, /dev/ptmx, /dev/pts.
    rules.extend([
        character(5, Some(1)),
        character(5, Some(2)),
        character(136, None),
    ]);

    for device in &config.devices {
        let node = node(&device.host_path, &device.container_path)?;
        rules.push(DeviceRule {
            kind: if node.kind == b'b' {
                DeviceKind::Block
            } else {
                DeviceKind::Character
            },
            major: Some(node.major),
            minor: Some(node.minor),
            access: Access::parse(&device.permissions),
        });
    }

    Ok(rules)
}

fn node(source: &str, target: &str) -> Result<Device, Error> {
    let about = fs::metadata(source).map_err(Error::io("stat device", Path::new(source)))?;
    let kind = if about.file_type().is_block_device() {
        b'b'
    } else if about.file_type().is_char_device() {
        b'c'
    } else {
        return Err(Error::Invalid(format!("{source} is not a device")));
    };

    Ok(Device {
        path: clean_path(target),
        kind,
        major: rustix::fs::major(about.rdev()),
        minor: rustix::fs::minor(about.rdev()),
        mode: about.mode() & 0o777,
        uid: about.uid(),
        gid: about.gid(),
    })
}

/// All devices of the host, except terminals and mounted filesystems.
fn host_devices(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };

    let mut found = Vec::new();
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let skipped = [
            "pts",
            "shm",
            "fd",
            "mqueue",
            ".lxc",
            ".lxd-mounts",
            ".udev",
            "console",
        ];

        let Ok(kind) = entry.file_type() else {
            continue;
        };

        if skipped.iter().any(|skipped| name == *skipped) {
            continue;
        }

        if kind.is_dir() {
            found.extend(host_devices(&path));
        } else if kind.is_char_device() || kind.is_block_device() {
            found.extend(path.to_str().map(str::to_owned));
        }
    }

    found
}
