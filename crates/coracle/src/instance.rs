//! Which cluster of this machine is meant: everything it makes outside of its data directory
//! carries a name that follows from that directory, so that several clusters live side by side, and
//! each can be found and removed again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};

/// Where a cluster lives unless something else is said.
pub(crate) const DEFAULT_DATA_DIR: &str = "/var/lib/coracle";

/// Kinds of file systems that a reboot empties: tmpfs, ramfs.
const IN_MEMORY: [rustix::fs::FsWord; 2] = [0x0102_1994, 0x8584_58f6];

/// One cluster on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Its data directory, absolute and without links.
    pub(crate) data_dir: PathBuf,
    id: String,
}

impl Instance {
    /// The cluster of this directory, which must be there.
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

    /// What the names of its cgroups and packet filter tables begin with.
    pub(crate) fn name(&self) -> String {
        format!("coracle-{}", self.id)
    }

    /// The bridge of its pods: names of interfaces are short.
    pub(crate) fn bridge(&self) -> String {
        format!("cor-{}", self.id)
    }

    /// The packet filter table of host ports and masquerading.
    pub(crate) fn pod_table(&self) -> String {
        format!("{}-pods", self.name())
    }

    /// The packet filter tables of Services.
    pub(crate) fn service_table(&self) -> String {
        format!("{}-services", self.name())
    }

    /// What a reboot empties.
    pub(crate) fn run_dir(&self) -> PathBuf {
        Path::new("/run/coracle").join(&self.id)
    }

    /// Makes that folder, in memory: on a machine whose `/run` is on a disk a reboot would empty
    /// nothing, and every pod would cost the disk dozens of files. A folder that is in use stays
    /// what it is.
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

    /// Archives and layouts of images that its node imports when it starts.
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
        assert!(default.bridge().len() <= 15, "{}", default.bridge());
    }

    #[test]
    fn links_lead_to_the_same_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(Instance::of(&link).unwrap(), Instance::of(&real).unwrap());
    }
}
