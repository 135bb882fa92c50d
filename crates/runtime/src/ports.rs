//! What containers need from the image store: a root filesystem and the image's configuration.
//!
//! The image store implements this with overlay mounts; tests of containers use a plain folder.

use std::path::PathBuf;

use async_trait::async_trait;
use coracle_cri::v1::ImageSpec;

/// Root filesystems for containers.
#[async_trait]
pub trait RootFs: Send + Sync {
    /// Resolves the image of a container, by ID, digest or name.
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageForContainer, RootFsError>;

    /// Creates a container's writable root filesystem, mounts it in the host's mount namespace, and
    /// returns its path. Idempotent: an existing one is mounted again if it is not. `mount_points`
    /// are paths at which something will be mounted; they may be created where the image lacks
    /// them.
    async fn prepare(
        &self,
        container: &str,
        image: &ImageForContainer,
        mount_points: &[String],
    ) -> Result<PathBuf, RootFsError>;

    /// Unmounts and deletes it. Idempotent.
    async fn remove(&self, container: &str) -> Result<(), RootFsError>;

    /// The containers that have a root filesystem, to find orphans.
    async fn containers(&self) -> Result<Vec<String>, RootFsError>;

    /// The usage of the container's writable layer.
    async fn usage(&self, container: &str) -> Result<RootFsUsage, RootFsError>;
}

/// An image as one container uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageForContainer {
    /// The image's id: `sha256:` and the digest of its configuration.
    pub id: String,
    /// The reported reference: a repository digest if there is one, else the ID.
    pub reference: String,
    pub config: ImageConfig,
}

/// The run configuration of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    /// `NAME=value`.
    pub environment: Vec<String>,
    pub working_dir: String,
    /// `user`, `uid`, `user:group` or `uid:gid`; empty is root.
    pub user: String,
    /// A signal's name or number; empty is SIGTERM.
    pub stop_signal: String,
    /// Folders declared as volumes.
    pub volumes: Vec<String>,
}

/// Disk usage of a container's writable layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootFsUsage {
    pub bytes: u64,
    pub inodes: u64,
}

/// Errors of root filesystems.
#[derive(Debug, thiserror::Error)]
pub enum RootFsError {
    #[error("image {0:?} not found")]
    NoSuchImage(String),
    #[error("cannot {action} the root filesystem of container {container}")]
    Io {
        action: &'static str,
        container: String,
        source: std::io::Error,
    },
}
