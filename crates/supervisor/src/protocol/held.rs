//! The record that a supervisor writes for each of its processes, so that another one can take over
//! when it is killed.
//!
//! Each container has a folder below that of its pod, with its named pipes and its record.

use super::spec::{Join, OomCounter};
use super::wire::record;

record! {
    /// A container, or the pause process of a pod, as it is written down.
    pub struct Held {
        pub id: String,
        pub pid: i32,
        /// When it was started, in the kernel's ticks: a pid may be used again, but not with this.
        pub born: u64,
        /// Its gate was opened.
        pub running: bool,
        pub terminal: bool,
        pub join: Join,
        pub shares_pids: bool,
        pub log: Option<String>,
        pub exit_file: String,
        pub oom: Option<OomCounter>,
    }
}

/// The file in a container's folder that has its record.
pub const RECORD: &str = "held";

/// The names of a container's streams in its folder.
pub const STDIN: &str = "stdin";
pub const STDOUT: &str = "stdout";
pub const STDERR: &str = "stderr";

/// The folder below a pod's folder that has a folder for each container.
pub const CONTAINERS: &str = "containers";
