//! The images of a node.

use async_trait::async_trait;

use crate::error::Result;
use crate::v1::{
    AuthConfig, Image, ImageFilter, ImageFsInfoResponse, ImageSpec, ImageStatusResponse,
    PodSandboxConfig,
};

/// Images: listed, looked up, pulled, removed.
#[async_trait]
pub trait Images: Send + Sync {
    /// The images that are here. An empty filter lets all pass.
    async fn list_images(&self, filter: ImageFilter) -> Result<Vec<Image>>;

    /// What is known of an image. One that is not here is an answer without an image, not an error.
    async fn image_status(&self, image: ImageSpec, verbose: bool) -> Result<ImageStatusResponse>;

    /// Fetches an image and answers with the reference by which containers are to ask for it.
    async fn pull_image(
        &self,
        image: ImageSpec,
        auth: Option<AuthConfig>,
        sandbox: Option<PodSandboxConfig>,
    ) -> Result<String>;

    /// Removes an image with all its names. One that is not here is removed already.
    async fn remove_image(&self, image: ImageSpec) -> Result<()>;

    /// What images and the writable layers of containers take of the disk.
    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse>;
}
