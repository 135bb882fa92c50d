//! Configuration of the runtime.

use std::path::{Path, PathBuf};

/// Paths, names and limits of one runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Distinguishes runtimes on one host: the name of their cgroups.
    pub instance: String,
    /// State that survives a reboot: records of pods and containers, and exit files.
    pub root: PathBuf,
    /// State that does not: sockets, namespaces, files of running pods.
    pub state: PathBuf,
    /// Maximum number of processes and threads of one container; none: unlimited.
    pub pids_limit: Option<u32>,
    /// Open files limit of a container's processes; none: that of this process, which raises its
    /// own limit.
    pub open_files: Option<OpenFiles>,
}

/// A limit of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The effective limit; a process can raise it.
    pub soft: u64,
    /// The upper bound of the soft limit.
    pub hard: u64,
}

impl Config {
    pub(crate) fn sandbox_records(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    pub(crate) fn container_records(&self) -> PathBuf {
        self.root.join("containers")
    }

    pub(crate) fn sandbox_root(&self, id: &str) -> PathBuf {
        self.sandbox_records().join(id)
    }

    pub(crate) fn sandbox_state(&self, id: &str) -> PathBuf {
        self.state.join("sandboxes").join(id)
    }

    pub(crate) fn container_root(&self, id: &str) -> PathBuf {
        self.container_records().join(id)
    }

    pub(crate) fn keeper(&self) -> PathBuf {
        self.state.join("keeper")
    }

    pub(crate) fn programs(&self) -> PathBuf {
        self.state.join("bin")
    }
}

/// A path as text. All paths of the runtime are valid UTF-8.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
