//! cgroups, of version 1 and 2 alike: create, limit, read, kill, remove.
//!
//! [`Hierarchies`] finds what the host has mounted; a [`Group`] is one path in all of it. Both
//! versions are worked with through the files of their folders, and nothing is kept in memory: what
//! is on the host is the truth.

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

/// Why a cgroup could not be worked with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the host has no cgroups mounted")]
    NotMounted,
    #[error("cannot {deed} {path}")]
    Io {
        deed: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("processes in {0} do not end")]
    DoesNotEnd(PathBuf),
    #[error("cannot attach the device rules to {path}")]
    DeviceRules {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err`: what was done, and to which file.
    pub(crate) fn io(
        deed: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { deed, path, source }
    }

    /// Whether a limit is less than what is in use, and cannot be reclaimed.
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy)
    }

    /// Whether the kernel refused a value.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput)
    }
}
