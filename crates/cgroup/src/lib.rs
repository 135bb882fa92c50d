//! cgroups, version 1 and 2: create, limit, read, kill, remove.
//!
//! [`Hierarchies`] detects what the host has mounted; a [`Group`] is one path in all hierarchies.
//! Both versions are used through their files, and no state is kept in memory.

mod ceiling;
mod devices;
mod group;
mod hierarchies;
mod limits;
mod sys;
mod usage;
mod weight;

pub use ceiling::Ceiling;
pub use devices::{Access, DeviceKind, DeviceRule};
pub use group::{Group, OomFile, Placement};
pub use hierarchies::{Hierarchies, Version};
pub use limits::Limits;
pub use usage::{CpuUsage, MemoryUsage, Usage};
pub use weight::{container_weight, pod_weight};

use std::path::PathBuf;

/// Why a cgroup operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the host has no cgroups mounted")]
    NotMounted,
    #[error("cannot {action} {path}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("processes in {0} did not exit after SIGKILL")]
    DoesNotEnd(PathBuf),
    #[error("cannot attach device rules to {path}")]
    DeviceRules {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err`: the action and its file.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }

    /// Whether a limit is below the current usage, which cannot be reclaimed.
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy)
    }

    /// Whether the kernel rejected a value.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput)
    }
}
