//! `image` volumes: the runtime mounts the image into each container. Nothing is on disk for them.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Volume;

use super::plugin::{Context, SetUp, SetUpError, VolumePlugin};

pub(super) struct ImagePlugin;

#[async_trait]
impl VolumePlugin for ImagePlugin {
    fn can_support(&self, volume: &Volume) -> bool {
        volume.image.is_some()
    }

    fn directory(&self) -> Option<&'static str> {
        None
    }

    async fn prepare(&self, _: &Volume, _: &Context<'_>) -> Result<SetUp, SetUpError> {
        Ok(SetUp::new(|_| Ok(())))
    }
}
