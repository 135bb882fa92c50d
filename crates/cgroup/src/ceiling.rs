//! The limits of a group's ancestors.

use std::fs;
use std::path::Path;

use crate::group::Group;
use crate::hierarchies::Version;
use crate::usage::NO_LIMIT;

/// The strictest limits of the groups that contain a group. `None`: no group above it has a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ceiling {
    /// Bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

impl Group {
    /// The limits that apply to this group from above, whatever its own are. For a node inside a
    /// container these are the container's limits.
    pub fn ceiling(&self) -> Ceiling {
        let memory = match self.hierarchies().version() {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };

        Ceiling {
            memory: self
                .strictest_above("memory", memory)
                .filter(|limit| *limit < NO_LIMIT),
            pids: self.strictest_above("pids", "pids.max"),
        }
    }

    /// The smallest number in the files of that name above this group, up to the mount.
    fn strictest_above(&self, controller: &str, file: &str) -> Option<u64> {
        let (mount, folder) = self.mount_and_folder(controller)?;
        let above = folder
            .ancestors()
            .skip(1)
            .take_while(|above| above.starts_with(mount));
        above.filter_map(|above| limit_in(&above.join(file))).min()
    }
}

/// `max` is no limit; the root group has no such file.
fn limit_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
