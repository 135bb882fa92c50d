//! One cluster of this machine. Everything it creates outside of its data directory has a name
//! derived from that directory, so that several clusters run side by side and each can be removed
//! completely.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};

/// Default data directory.
pub(crate) const DEFAULT_DATA_DIR: &str = "/var/lib/coracle";

/// Magic numbers of in-memory file systems: tmpfs, ramfs.
const IN_MEMORY: [rustix::fs::FsWord; 2] = [0x0102_1994, 0x8584_58f6];

/// One cluster on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Its data directory, absolute and without symlinks.
    pub(crate) data_dir: PathBuf,
    id: String,
}

impl Instance {
    /// The cluster of this directory, which must exist.
    pub(crate) fn of(data_dir: &Path) -> io::Result<Instance> {
        Ok(Instance::at(data_dir.canonicalize()?))
    }

    fn at(data_dir: PathBuf) -> Instance {
        let hash = digest(&SHA256, data_dir.as_os_str().as_encoded_bytes());
        let id = hash.as_ref()[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Instance { data_dir, id }
    }

    /// Prefix of its cgroups and packet filter tables.
    pub(crate) fn name(&self) -> String {
        format!("coracle-{}", self.id)
    }

    /// The bridge of its pods; interface names have at most 15 bytes.
    pub(crate) fn bridge(&self) -> String {
        format!("cor-{}", self.id)
    }

    /// The VXLAN interfaces of the network between nodes: over IPv4 and over IPv6.
    pub(crate) fn tunnels(&self) -> [String; 2] {
        ["corv4-", "corv6-"].map(|prefix| format!("{prefix}{}", self.id))
    }

    /// All interfaces of the host's network namespace that it creates, but those of pods.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        self.tunnels().into_iter().chain([self.bridge()]).collect()
    }

    /// What the network between nodes creates.
    pub(crate) fn network(&self) -> coracle_network::Names {
        coracle_network::Names {
            bridge: self.bridge(),
            devices: self.tunnels(),
            table: format!("{}-network", self.name()),
        }
    }

    /// The record of the routes between nodes.
    pub(crate) fn network_record(&self) -> PathBuf {
        self.run_dir().join("routes.json")
    }

    /// The packet filter table of host ports and masquerading.
    pub(crate) fn pod_table(&self) -> String {
        format!("{}-pods", self.name())
    }

    /// The packet filter tables of Services.
    pub(crate) fn service_table(&self) -> String {
        format!("{}-services", self.name())
    }

    /// The directory for state that does not survive a reboot.
    pub(crate) fn run_dir(&self) -> PathBuf {
        Path::new("/run/coracle").join(&self.id)
    }

    /// Creates the run directory, as a tmpfs unless `/run` is one: on disk it would survive a
    /// reboot, and every pod would write dozens of files. A non-empty directory is left as it is.
    pub(crate) fn make_run_dir(&self) -> io::Result<()> {
        let folder = self.run_dir();
        fs::create_dir_all(&folder)?;

        if IN_MEMORY.contains(&statfs(&folder)?.f_type) || fs::read_dir(&folder)?.next().is_some() {
            return Ok(());
        }

        Ok(mount(
            "coracle",
            &folder,
            "tmpfs",
            MountFlags::NOSUID | MountFlags::NODEV,
            c"mode=755",
        )?)
    }

    /// The runtime of its node.
    pub(crate) fn runtime(&self) -> coracle_runtime::Config {
        coracle_runtime::Config {
            instance: self.name(),
            root: self.data_dir.join("runtime"),
            state: self.run_dir().join("runtime"),
            pids_limit: None,
            open_files: None,
        }
    }

    /// Directory of image archives and layouts that its node imports.
    pub(crate) fn preload(&self) -> PathBuf {
        self.data_dir.join("preload")
    }

    /// The images of its node.
    pub(crate) fn images(&self) -> PathBuf {
        self.data_dir.join("images")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_name_and_another_has_another() {
        let default = Instance::at(PathBuf::from(DEFAULT_DATA_DIR));
        assert_eq!(default, Instance::at(PathBuf::from("/var/lib/coracle")));
        assert_ne!(
            default.name(),
            Instance::at(PathBuf::from("/srv/other")).name()
        );
        for interface in default.interfaces() {
            assert!(interface.len() <= 15, "{interface}");
        }
    }

    #[test]
    fn symlinks_name_the_same_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(Instance::of(&link).unwrap(), Instance::of(&real).unwrap());
    }
}
