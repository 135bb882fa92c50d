//! What containers need from the image store: a root filesystem and the image's configuration.
//!
//! The image store implements this with overlay mounts; tests of containers use a plain folder.

use std::path::PathBuf;

use async_trait::async_trait;
use coracle_cri::v1::ImageSpec;

/// Root filesystems for containers.
#[async_trait]
pub trait RootFs: Send + Sync {
    /// The image that a container asked for, by id, digest or name.
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageForContainer, RootFsError>;

    /// Makes a container's root filesystem, writable, mounted in the host's mount namespace, and
    /// answers where it is. For a container that has one already, the same one: mounted again if it
    /// is not. `mount_points` are paths at which something will be mounted: places for these may be
    /// there already where the image has none.
    async fn prepare(
        &self,
        container: &str,
        image: &ImageForContainer,
        mount_points: &[String],
    ) -> Result<PathBuf, RootFsError>;

    /// Unmounts and deletes it. One that is gone is no error.
    async fn remove(&self, container: &str) -> Result<(), RootFsError>;

    /// The containers that have a root filesystem here, for whoever looks for what was left behind.
    async fn containers(&self) -> Result<Vec<String>, RootFsError>;

    /// What the container itself wrote.
    async fn usage(&self, container: &str) -> Result<RootFsUsage, RootFsError>;
}

/// An image as one container uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageForContainer {
    /// The image's id: `sha256:` and the digest of its configuration.
    pub id: String,
    /// By which it is reported: a repository digest where there is one, else the id.
    pub reference: String,
    pub config: ImageConfig,
}

/// What an image says about running it.
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
    /// Folders that want a volume of their own.
    pub volumes: Vec<String>,
}

/// What a container's writable layer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootFsUsage {
    pub bytes: u64,
    pub inodes: u64,
}

/// Why there is no root filesystem.
#[derive(Debug, thiserror::Error)]
pub enum RootFsError {
    #[error("image {0:?} not found")]
    NoSuchImage(String),
    #[error("cannot {deed} the root filesystem of container {container}")]
    Io {
        deed: &'static str,
        container: String,
        source: std::io::Error,
    },
}
