//! Paths of the kubelet, as upstream's below `/var/lib/kubelet` and `/var/log`.
//!
//! ```text
//! <root>/pods/<uid>/volumes/<plugin>/<volume>       what a volume of a pod is
//! <root>/pods/<uid>/plugins                         what plugins keep about a pod
//! <root>/pods/<uid>/volume-subpaths/…               parts of volumes that containers have mounted
//! <root>/pods/<uid>/containers/<container>/<id>     the termination message of one container
//! <root>/pods/<uid>/etc-hosts                       the hosts file of a pod
//! <root>/image_manager                              with whose credentials images were pulled
//! <logs>/pods/<namespace>_<name>_<uid>/<container>/<attempt>.log
//! <logs>/containers/<name>_<namespace>_<container>-<id>.log   a link to it
//! ```

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use coracle_files::private;

use crate::pod::PodId;

/// The directories of one kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
    logs: PathBuf,
}

impl Layout {
    /// Everything below one directory: `<data>/kubelet` and `<data>/log`.
    pub fn below(data: &Path) -> Layout {
        Layout {
            root: data.join("kubelet"),
            logs: data.join("log"),
        }
    }

    /// Creates the directories that all pods share, with upstream's modes.
    pub(crate) fn make(&self) -> io::Result<()> {
        for folder in [self.root.clone(), self.pods(), self.pod_logs()] {
            private::folder_for(&folder, 0o750)?;
        }
        // Log collectors that do not run as root follow the links.
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(self.container_links())
    }

    /// `/var/lib/kubelet`, upstream.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }

    pub fn pod(&self, uid: &str) -> PathBuf {
        self.pods().join(uid)
    }

    /// The volumes of a pod, one directory per volume plugin (`kubernetes.io~empty-dir`).
    pub fn volumes(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("volumes")
    }

    /// Data of volume plugins about a pod.
    pub fn plugins(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("plugins")
    }

    /// One volume; `plugin` is a name such as `kubernetes.io~empty-dir`.
    pub fn volume(&self, uid: &str, plugin: &str, name: &str) -> PathBuf {
        self.volumes(uid).join(plugin).join(name)
    }

    pub fn volume_subpaths(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("volume-subpaths")
    }

    /// Termination messages of containers of this name, one file per instance.
    pub fn container(&self, uid: &str, container: &str) -> PathBuf {
        self.pod(uid).join("containers").join(container)
    }

    pub fn hosts_file(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("etc-hosts")
    }

    /// `/var/log/pods`, upstream.
    pub fn pod_logs(&self) -> PathBuf {
        self.logs.join("pods")
    }

    /// The logs of one pod.
    pub fn logs_of(&self, pod: &PodId) -> PathBuf {
        self.pod_logs()
            .join(format!("{}_{}_{}", pod.namespace, pod.name, pod.uid))
    }

    /// The log of one instance of a container, below [`logs_of`](Layout::logs_of).
    pub fn log_path(container: &str, attempt: u32) -> String {
        format!("{container}/{attempt}.log")
    }

    /// `/var/log/containers`, upstream.
    pub fn container_links(&self) -> PathBuf {
        self.logs.join("containers")
    }
}
