//! Configuration of the runtime.

use std::path::{Path, PathBuf};

/// Paths, names and limits of one runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Tells runtimes on one host apart: the name of their cgroups.
    pub instance: String,
    /// What survives a reboot: records of pods and containers, how they ended.
    pub root: PathBuf,
    /// What does not: sockets, namespaces, files of running pods.
    pub state: PathBuf,
    /// Most processes and threads of one container; none: as many as the host lets it have.
    pub pids_limit: Option<u32>,
    /// How many files a process of a container may have open; none: as many as this process, which
    /// raises its own limit.
    pub open_files: Option<OpenFiles>,
}

/// A limit of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// What holds; a process can raise it.
    pub soft: u64,
    /// How far.
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

/// A path as text: all of ours are, or nothing could be told to anybody.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
