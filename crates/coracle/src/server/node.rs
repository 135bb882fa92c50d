//! The node of a cluster in one process: runtime, network of pods, kubelet and service proxy, on threads of their own, so
//! that neither the control plane nor the node waits for the other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use coracle_cgroup::Hierarchies;
use coracle_podnet::{Bridge, BridgeConfig};
use coracle_runtime::images::ImagesConfig;
use ipnet::IpNet;
use rustix::mount::{UnmountFlags, unmount};

use crate::instance::Instance;

/// The network of this cluster's pods. Who speaks to somebody outside of `inside` appears with the node's address.
pub(crate) async fn network(
    instance: &Instance,
    ranges: Vec<IpNet>,
    inside: Vec<IpNet>,
) -> Result<Bridge, coracle_podnet::Error> {
    let config = BridgeConfig {
        name: instance.bridge(),
        table: instance.pod_table(),
        state: instance.run_dir().join("network"),
        ranges,
        mtu: None,
        masquerade_outside: inside,
    };
    Bridge::open(config).await
}

/// Where its images are kept.
pub(crate) fn images(instance: &Instance) -> ImagesConfig {
    ImagesConfig::new(instance.images(), now)
}

/// Where the root filesystems of its containers are mounted.
pub(crate) fn mounts(instance: &Instance) -> PathBuf {
    instance.run_dir().join("rootfs")
}

#[expect(clippy::disallowed_methods, reason = "this is where the wall clock is handed in from")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Takes away the mounts and cgroups that are left when no pod is. What cannot be removed is told, and ends nothing.
pub(crate) fn remove_mounts_and_groups(instance: &Instance) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for path in mounts_below(&mounts, &[&instance.run_dir(), &instance.data_dir]) {
        if let Err(errno) = unmount(&path, UnmountFlags::DETACH) {
            tracing::warn!(path = %path.display(), error = %io::Error::from(errno), "cannot be unmounted");
        }
    }
    let removed = Hierarchies::detect().and_then(|hierarchies| {
        let group = hierarchies.group(&instance.name());
        group.kill()?;
        group.folders().iter().for_each(|folder| remove_groups(folder));
        Ok(())
    });
    if let Err(error) = removed {
        tracing::warn!(%error, "the cgroups cannot be removed");
    }
}

/// A folder of groups with all below it, the deepest first.
fn remove_groups(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    if let Err(error) = fs::remove_dir(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %folder.display(), %error, "a cgroup cannot be removed");
    }
}

/// What is mounted below these folders, the last one first.
fn mounts_below(mountinfo: &str, folders: &[&Path]) -> Vec<PathBuf> {
    let place = |line: &str| line.split(' ').nth(4).map(|path| PathBuf::from(path.replace("\\040", " ")));
    let ours = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder));
    let mut found: Vec<PathBuf> = mountinfo.lines().filter_map(place).filter(ours).collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_taken_away_from_the_last_to_the_first() {
        let table = "21 1 0:19 / /proc rw - proc proc rw\n\
                     30 1 0:20 / /run/coracle/a rw - tmpfs x rw\n\
                     31 30 0:21 / /run/coracle/a/with\\040space rw - tmpfs x rw\n\
                     32 1 0:22 / /run/coracle/ab rw - tmpfs x rw\n";
        let found = mounts_below(table, &[Path::new("/run/coracle/a"), Path::new("/var/lib/x")]);
        assert_eq!(found, ["/run/coracle/a/with space", "/run/coracle/a"].map(PathBuf::from));
    }
}
