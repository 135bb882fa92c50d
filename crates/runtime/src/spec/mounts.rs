//! Mounts of a container: the standard ones, the pod's files, then those of the container config.

use std::path::Path;

use coracle_cgroup::Hierarchies;
use coracle_cri::v1::{ContainerConfig, LinuxContainerSecurityContext, Mount, NamespaceMode};
use coracle_supervisor::protocol::{Bind, Filesystem, MountSpec, Propagation};

use super::{SpecInputs, pod_namespaces, propagation, sharing};
use crate::config::text;
use crate::error::Error;

const NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
const NODEV: u64 = libc::MOUNT_ATTR_NODEV;
const NOEXEC: u64 = libc::MOUNT_ATTR_NOEXEC;
const RDONLY: u64 = libc::MOUNT_ATTR_RDONLY;
const STRICTATIME: u64 = libc::MOUNT_ATTR_STRICTATIME;

pub(super) const DEV: &str = "/dev";

/// Files of the pod that every container has, unless it mounts its own.
const POD_FILES: [&str; 3] = ["hostname", "hosts", "resolv.conf"];

/// The mount points of a container in its root filesystem.
pub(crate) fn mount_points(config: &ContainerConfig) -> Vec<String> {
    let usual = ["/dev", "/proc", "/sys"].map(str::to_owned);
    let files = POD_FILES.map(|file| format!("/etc/{file}"));
    usual
        .into_iter()
        .chain(files)
        .chain(
            config
                .mounts
                .iter()
                .map(|mount| mount.container_path.clone()),
        )
        .collect()
}

pub(super) fn list(
    from: &SpecInputs<'_>,
    security: &LinuxContainerSecurityContext,
) -> Result<Vec<MountSpec>, Error> {
    let mut mounts = usual(from, security);
    let files = POD_FILES.map(|file| Bind {
        readonly: security.readonly_rootfs,
        ..bind(&text(&from.pod_files.join(file)), &format!("/etc/{file}"))
    });

    let files = files
        .into_iter()
        .filter(|file| !has_mount_at(from.config, &file.target))
        .map(Ok);

    let mut binds: Vec<Bind> = files
        .chain(from.config.mounts.iter().map(bind_mount))
        .collect::<Result<_, _>>()?;

    // Parents before children, whatever the order in the config.
    binds.sort_by_key(|bind| Path::new(&bind.target).components().count());
    mounts.extend(binds.into_iter().map(|bind| MountSpec::Bind { bind }));

    Ok(mounts)
}

/// Whether a container mounts a volume exactly at a path. Then nothing else is created there; and
/// at `/dev`, nothing below it either.
pub(crate) fn has_mount_at(config: &ContainerConfig, path: &str) -> bool {
    config
        .mounts
        .iter()
        .any(|mount| clean_path(&mount.container_path) == path)
}

/// A lexically cleaned path, without `.`, `..` and repeated slashes, as other runtimes treat volume
/// paths.
pub(crate) fn clean_path(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// The propagation of the root: the strongest of all mounts.
pub(super) fn root_propagation(mounts: &[Mount]) -> Propagation {
    let requested: Vec<Propagation> = mounts.iter().map(propagation).collect();
    let strongest = [Propagation::Shared {}, Propagation::Slave {}];
    strongest
        .into_iter()
        .find(|propagation| requested.contains(propagation))
        .unwrap_or_default()
}

fn usual(from: &SpecInputs<'_>, security: &LinuxContainerSecurityContext) -> Vec<MountSpec> {
    let readonly = if security.privileged { 0 } else { RDONLY };
    let mut mounts = vec![new("proc", "/proc", &[], NOSUID | NODEV | NOEXEC)];
    if !has_mount_at(from.config, DEV) {
        mounts.extend(devices(from));
    }

    mounts.push(new(
        "sysfs",
        "/sys",
        &[],
        NOSUID | NODEV | NOEXEC | readonly,
    ));

    mounts.extend(cgroups(from, security.privileged));

    mounts
}

/// The mounts of the container's own `/dev`, without the device nodes.
fn devices(from: &SpecInputs<'_>) -> Vec<MountSpec> {
    let mut mounts = vec![
        new(
            "tmpfs",
            DEV,
            &[("mode", "755"), ("size", "65536k")],
            NOSUID | STRICTATIME,
        ),
        new(
            "devpts",
            "/dev/pts",
            &[
                ("newinstance", ""),
                ("ptmxmode", "0666"),
                ("mode", "0620"),
                ("gid", "5"),
            ],
            NOSUID | NOEXEC,
        ),
        // Of the container's IPC namespace, even if that is the host's.
        new("mqueue", "/dev/mqueue", &[], NOSUID | NODEV | NOEXEC),
    ];

    if !has_mount_at(from.config, "/dev/shm") {
        let host_ipc = pod_namespaces(from.sandbox).ipc() == NamespaceMode::Node;
        let source = if host_ipc {
            "/dev/shm".to_owned()
        } else {
            text(&from.pod_folder.join("shm"))
        };

        mounts.push(MountSpec::Bind {
            bind: bind(&source, "/dev/shm"),
        });
    }

    let links = [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
        ("/dev/ptmx", "pts/ptmx"),
    ];

    mounts.extend(links.map(|(path, target)| MountSpec::Link {
        path: path.to_owned(),
        target: target.to_owned(),
    }));

    mounts
}

/// The container's own cgroups, read-only unless privileged.
fn cgroups(from: &SpecInputs<'_>, privileged: bool) -> Vec<MountSpec> {
    let readonly = if privileged { 0 } else { RDONLY };
    let target = "/sys/fs/cgroup";
    let Hierarchies::V1 { controllers } = from.hierarchies else {
        return vec![new(
            "cgroup2",
            target,
            &[("nsdelegate", "")],
            NOSUID | NODEV | NOEXEC | readonly,
        )];
    };

    // Version 1 is used without a cgroup namespace, so each of the container's cgroups is
    // bind-mounted.
    let tmpfs = Filesystem {
        kind: "tmpfs".to_owned(),
        target: target.to_owned(),
        options: vec![("mode".to_owned(), "755".to_owned())],
        attributes: NOSUID | NODEV | NOEXEC,
        seal: !privileged,
    };
    let mut mounts = vec![MountSpec::New { filesystem: tmpfs }];

    let group = from.group.path();
    for mount in from.hierarchies.mounts() {
        let name = mount
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();

        let source = format!("{}{group}", mount.display());
        let bind = Bind {
            readonly: !privileged,
            attributes: NOSUID | NODEV | NOEXEC,
            ..bind(&source, &format!("{target}/{name}"))
        };
        mounts.push(MountSpec::Bind { bind });

        // Controllers that share a mount have links by their own names.
        let shared = controllers
            .iter()
            .filter(|(controller, place)| *place == mount && **controller != name);
        for (controller, _) in shared.filter(|(controller, _)| !controller.contains('=')) {
            mounts.push(MountSpec::Link {
                path: format!("{target}/{controller}"),
                target: name.clone(),
            });
        }
    }

    mounts
}

fn bind_mount(mount: &Mount) -> Result<Bind, Error> {
    if !mount.uid_mappings.is_empty() || !mount.gid_mappings.is_empty() {
        return Err(Error::Unsupported("an ID-mapped mount"));
    }

    if !mount.container_path.starts_with('/') || mount.host_path.is_empty() {
        return Err(Error::Invalid(format!(
            "invalid mount of {:?} at {:?}",
            mount.host_path, mount.container_path
        )));
    }

    if clean_path(&mount.container_path) == "/" {
        let path = &mount.host_path;
        return Err(Error::Invalid(format!(
            "cannot mount {path:?} at the container's root: choose a directory below it"
        )));
    }

    if mount.recursive_read_only
        && (!mount.readonly || propagation(mount) != Propagation::default())
    {
        return Err(Error::Invalid(
            "a recursive read-only mount must be read-only and private".to_owned(),
        ));
    }

    // The kubelet creates volumes; a missing host path becomes a folder.
    if !Path::new(&mount.host_path).exists() {
        let path = Path::new(&mount.host_path);
        std::fs::create_dir_all(path).map_err(Error::io("create", path))?;
    }

    sharing::check(&mount.host_path, &propagation(mount))?;

    // An image is never written to, and its programs are not for the container.
    let of_image = mount.image.is_some();

    Ok(Bind {
        recursive: true,
        readonly: mount.readonly || of_image,
        attributes: if of_image { NOEXEC } else { 0 },
        recursive_readonly: mount.recursive_read_only,
        propagation: propagation(mount),
        ..bind(&mount.host_path, &clean_path(&mount.container_path))
    })
}

fn bind(source: &str, target: &str) -> Bind {
    Bind {
        source: source.to_owned(),
        target: target.to_owned(),
        ..Bind::default()
    }
}

fn new(kind: &str, target: &str, options: &[(&str, &str)], attributes: u64) -> MountSpec {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();

    let filesystem = Filesystem {
        kind: kind.to_owned(),
        target: target.to_owned(),
        options,
        attributes,
        seal: false,
    };

    MountSpec::New { filesystem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_paths_are_cleaned_lexically() {
        let check = |path: &str, expected: &str| assert_eq!(clean_path(path), expected, "{path}");
        check("/dev", "/dev");
        check("/dev/", "/dev");
        check("//a/./b/../../dev/.", "/dev");
        check("/../dev", "/dev");
        check("/", "/");
    }

    #[test]
    fn a_volume_at_the_root_is_refused() {
        let at = |path: &str| Mount {
            container_path: path.to_owned(),
            host_path: "/tmp".to_owned(),
            ..Mount::default()
        };
        assert_eq!(
            bind_mount(&at("/data/..")).unwrap_err().to_string(),
            bind_mount(&at("/")).unwrap_err().to_string()
        );
        assert!(bind_mount(&at("/data/")).is_ok());
    }
}
