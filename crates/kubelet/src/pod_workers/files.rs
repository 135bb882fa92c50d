//! Directories and files of a pod and its containers. Those that are needed together are created
//! together, on a blocking thread.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use coracle_cri::v1::Mount;
use coracle_files::private;
use k8s_openapi::api::core::v1::{Container, Pod};

use crate::host::Host;
use crate::layout::Layout;
use crate::pod::PodView as _;
use crate::spec::{hosts, names};

/// The directories of a pod.
pub(super) struct PodDirectories {
    private: [PathBuf; 2],
    logs: PathBuf,
}

impl PodDirectories {
    pub(super) fn of(layout: &Layout, pod: &Pod) -> PodDirectories {
        PodDirectories {
            private: [layout.volumes(pod.uid()), layout.plugins(pod.uid())],
            logs: layout.logs_of(&pod.id()),
        }
    }

    pub(super) fn create(&self) -> io::Result<()> {
        for directory in &self.private {
            // Only the kubelet and administrators may enter them.
            private::folder_for(directory, DIRECTORY_MODE)?;
        }
        fs::create_dir_all(&self.logs)
    }
}

/// Mode of a pod's directories.
const DIRECTORY_MODE: u32 = 0o750;

/// The files of a container instance besides volumes.
pub(super) struct ContainerFiles {
    container: String,
    logs: PathBuf,
    /// None: the container mounts something else there, or the pod has no network.
    hosts: Option<(PathBuf, Hosts)>,
    /// The termination message file, and its path in the container.
    message: Option<(PathBuf, String)>,
}

/// The contents of a hosts file.
enum Hosts {
    /// A generated text.
    Text(String),
    /// The host's file with the pod's aliases.
    OfHost(Box<Pod>),
}

/// Path of the hosts file.
const HOSTS: &str = "/etc/hosts";

impl ContainerFiles {
    pub(super) fn of(
        host: &Host,
        pod: &Pod,
        container: &Container,
        addresses: &[String],
    ) -> Result<ContainerFiles, String> {
        let message = container
            .termination_message_path
            .as_deref()
            .filter(|path_inside| !path_inside.is_empty());

        // Each instance has its own file.
        let file = format!("{:08x}", (host.world.random)() >> 32);
        let message = message.map(|path_inside| {
            (
                host.layout.container(pod.uid(), &container.name).join(file),
                path_inside.to_owned(),
            )
        });

        Ok(ContainerFiles {
            container: container.name.clone(),
            logs: host.layout.logs_of(&pod.id()).join(&container.name),
            hosts: hosts_of(host, pod, container, addresses)?
                .map(|hosts| (host.layout.hosts_file(pod.uid()), hosts)),
            message,
        })
    }

    /// Creates them; returns their mounts, and the restart count according to the logs.
    pub(super) fn create(&self) -> Result<(Vec<Mount>, u32), String> {
        let mut mounts = Vec::new();
        if let Some((path, hosts)) = &self.hosts {
            let text = match hosts {
                Hosts::Text(text) => text.clone(),
                Hosts::OfHost(pod) => {
                    hosts::of_host(pod, &fs::read_to_string(HOSTS).unwrap_or_default())
                }
            };
            write_hosts(path, &text).map_err(|error| error.to_string())?;
            mounts.push(mount(path, HOSTS));
        }

        if let Some((path, path_inside)) = &self.message {
            create_message_file(path).map_err(|error| error.to_string())?;
            mounts.push(mount(path, path_inside));
        }

        let restarts = attempts(&self.logs).map_err(|error| {
            format!(
                "create container log directory for container {} failed: {error}",
                self.container
            )
        })?;

        Ok((mounts, restarts))
    }
}

fn hosts_of(
    host: &Host,
    pod: &Pod,
    container: &Container,
    addresses: &[String],
) -> Result<Option<Hosts>, String> {
    let taken = container
        .volume_mounts
        .iter()
        .flatten()
        .any(|mount| mount.mount_path == HOSTS);

    if taken || (addresses.is_empty() && !pod.is_host_network()) {
        return Ok(None);
    }
    if pod.is_host_network() {
        return Ok(Some(Hosts::OfHost(Box::new(pod.clone()))));
    }

    let (name, domain) =
        names::host_name(pod, &host.cluster_domain).map_err(|error| error.to_string())?;

    Ok(Some(Hosts::Text(hosts::managed(
        pod, addresses, &name, &domain,
    ))))
}

/// Readable by any user of the container. The file is rewritten in place: other containers have it
/// mounted.
fn write_hosts(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(0o644))
}

/// Writable by any user of the container.
fn create_message_file(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| {
        private::folder_for(directory, DIRECTORY_MODE)
    })?;
    fs::File::create(path)?.set_permissions(Permissions::from_mode(0o666))
}

/// Creates a log directory, if it is missing. Returns the attempt number after that of the newest
/// log.
fn attempts(directory: &Path) -> io::Result<u32> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(directory)?;
            return Ok(0);
        }
        made => return made.map(|()| 0),
    }

    let entries = fs::read_dir(directory)?.flatten();
    let number = |name: &str| name.split('.').next()?.parse::<u32>().ok();
    Ok(entries
        .filter_map(|entry| number(entry.file_name().to_str()?))
        .max()
        .map_or(0, |newest| newest + 1))
}

fn mount(from: &Path, to: &str) -> Mount {
    Mount {
        container_path: to.to_owned(),
        host_path: from.to_string_lossy().into_owned(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_restart_count_is_derived_from_the_logs() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().join("pod/c");
        assert_eq!(attempts(&logs).unwrap(), 0);
        assert_eq!(attempts(&logs).unwrap(), 0);

        for (name, expected) in [
            ("0.log", 1),
            ("9.log", 10),
            ("10.log.20260301-120000.gz", 11),
            ("other", 11),
        ] {
            fs::write(logs.join(name), "").unwrap();
            assert_eq!(attempts(&logs).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn the_termination_message_file_is_world_writable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c/1234");
        create_message_file(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o666
        );
    }
}
