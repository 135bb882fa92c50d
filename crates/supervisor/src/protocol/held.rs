//! The record that a supervisor writes for each of its processes, so that another one can take over
//! when it is killed.
//!
//! Each container has a folder below that of its pod, with its named pipes and its record.

use super::spec::{Join, OomCounter};
use super::wire::record;

record! {
    /// The record of a container, or of the pause process of a pod.
    pub struct Held {
        pub id: String,
        pub pid: i32,
        /// The start time in ticks, which identifies the process if the pid is reused.
        pub born: u64,
        /// It was started (its gate was opened).
        pub running: bool,
        pub terminal: bool,
        pub join: Join,
        pub shares_pids: bool,
        pub log: Option<String>,
        pub exit_file: String,
        pub oom: Option<OomCounter>,
    }
}

/// The name of the record in a container's folder.
pub const RECORD: &str = "held";

/// The names of a container's streams in its folder.
pub const STDIN: &str = "stdin";
pub const STDOUT: &str = "stdout";
pub const STDERR: &str = "stderr";

/// The folder in a pod's folder with a folder for each container.
pub const CONTAINERS: &str = "containers";
