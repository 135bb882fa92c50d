//! The image service over gRPC.

use async_trait::async_trait;

use super::Client;
use crate::error::Result;
use crate::images::Images;
use crate::v1::{
    AuthConfig, Image, ImageFilter, ImageFsInfoRequest, ImageFsInfoResponse, ImageSpec,
    ImageStatusRequest, ImageStatusResponse, ListImagesRequest, PodSandboxConfig, PullImageRequest,
    RemoveImageRequest,
};

#[async_trait]
impl Images for Client {
    async fn list_images(&self, filter: ImageFilter) -> Result<Vec<Image>> {
        let request = ListImagesRequest {
            filter: Some(filter),
        };
        Ok(self
            .images
            .clone()
            .list_images(request)
            .await?
            .into_inner()
            .images)
    }

    async fn image_status(&self, image: ImageSpec, verbose: bool) -> Result<ImageStatusResponse> {
        let request = ImageStatusRequest {
            image: Some(image),
            verbose,
        };
        Ok(self
            .images
            .clone()
            .image_status(request)
            .await?
            .into_inner())
    }

    async fn pull_image(
        &self,
        image: ImageSpec,
        auth: Option<AuthConfig>,
        sandbox: Option<PodSandboxConfig>,
    ) -> Result<String> {
        let request = PullImageRequest {
            image: Some(image),
            auth,
            sandbox_config: sandbox,
        };

        Ok(self
            .images
            .clone()
            .pull_image(request)
            .await?
            .into_inner()
            .image_ref)
    }

    async fn remove_image(&self, image: ImageSpec) -> Result<()> {
        self.images
            .clone()
            .remove_image(RemoveImageRequest { image: Some(image) })
            .await?;
        Ok(())
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse> {
        Ok(self
            .images
            .clone()
            .image_fs_info(ImageFsInfoRequest {})
            .await?
            .into_inner())
    }
}
