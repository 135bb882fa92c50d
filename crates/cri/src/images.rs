//! The images of a node.

use async_trait::async_trait;

use crate::error::Result;
use crate::v1::{
    AuthConfig, Image, ImageFilter, ImageFsInfoResponse, ImageSpec, ImageStatusResponse,
    PodSandboxConfig,
};

/// The image service.
#[async_trait]
pub trait Images: Send + Sync {
    /// Lists images; an empty filter selects all.
    async fn list_images(&self, filter: ImageFilter) -> Result<Vec<Image>>;

    /// The status of an image. If it does not exist, the response has no image; this is not an
    /// error.
    async fn image_status(&self, image: ImageSpec, verbose: bool) -> Result<ImageStatusResponse>;

    /// Pulls an image, and returns its reference for containers.
    async fn pull_image(
        &self,
        image: ImageSpec,
        auth: Option<AuthConfig>,
        sandbox: Option<PodSandboxConfig>,
    ) -> Result<String>;

    /// Removes an image with all its names. Idempotent.
    async fn remove_image(&self, image: ImageSpec) -> Result<()>;

    /// Disk usage of images and writable layers.
    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse>;
}
