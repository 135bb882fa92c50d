//! The CRI image service.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_base::error_chain;
use coracle_cri::v1;
use coracle_cri::{Error, Images, Result};

use super::pull::Report;
use super::registry::credentials;
use super::{Credentials, Image, ImageError, ImageStore, Reference, RegistryError};
use crate::rootfs::disk_usage;

#[async_trait]
impl Images for ImageStore {
    async fn list_images(&self, filter: v1::ImageFilter) -> Result<Vec<v1::Image>> {
        let wanted = filter
            .image
            .map(|spec| spec.image)
            .filter(|image| !image.is_empty());
        let images = match wanted {
            None => self.list(),
            Some(wanted) => self.find(&wanted).into_iter().collect(),
        };
        images.iter().map(|image| self.show(image)).collect()
    }

    async fn image_status(
        &self,
        image: v1::ImageSpec,
        verbose: bool,
    ) -> Result<v1::ImageStatusResponse> {
        let Some(found) = self.find(&image.image) else {
            return Ok(v1::ImageStatusResponse::default());
        };

        let mut info = std::collections::HashMap::new();
        if verbose {
            let config = self.config_of(&found).map_err(|error| internal(&error))?;
            info.insert(
                "config".to_owned(),
                String::from_utf8_lossy(&config).into_owned(),
            );
        }

        Ok(v1::ImageStatusResponse {
            image: Some(self.show(&found)?),
            info,
        })
    }

    async fn pull_image(
        &self,
        image: v1::ImageSpec,
        auth: Option<v1::AuthConfig>,
        _sandbox: Option<v1::PodSandboxConfig>,
    ) -> Result<String> {
        let reference: Reference =
            ImageError::name(&image.image).map_err(|error| refused(&image.image, &error))?;
        let credentials: Vec<Credentials> = auth
            .and_then(|auth| credentials_for(&reference, &auth))
            .into_iter()
            .collect();

        let no_report: Report = Arc::new(|_| {});
        let pulled = self.pull(&reference, &credentials, &no_report).await;

        Ok(pulled
            .map_err(|error| refused(&image.image, &error))?
            .id
            .to_string())
    }

    async fn remove_image(&self, image: v1::ImageSpec) -> Result<()> {
        let Some(found) = self.find(&image.image) else {
            return Ok(());
        };
        self.remove(&found).await.map_err(|error| internal(&error))
    }

    async fn image_fs_info(&self) -> Result<v1::ImageFsInfoResponse> {
        let store = Arc::clone(self.store());
        let measured = tokio::task::spawn_blocking(move || {
            let writable = store
                .containers()
                .into_iter()
                .map(|container| store.container_path(&container));
            let written = writable
                .map(|path| disk_usage(&path))
                .collect::<std::io::Result<Vec<_>>>();
            (store.usage(), written)
        });

        let (images, containers) = measured
            .await
            .map_err(|error| Error::Internal(error.to_string()))?;
        let containers = containers.map_err(|error| Error::Internal(error.to_string()))?;
        let containers = containers
            .iter()
            .fold((0, 0), |sum, used| (sum.0 + used.0, sum.1 + used.1));

        Ok(v1::ImageFsInfoResponse {
            image_filesystems: vec![self.show_usage(images)],
            container_filesystems: vec![self.show_usage(containers)],
        })
    }
}

impl ImageStore {
    fn show_usage(&self, (bytes, inodes): (u64, u64)) -> v1::FilesystemUsage {
        let since_epoch = (self.config.now)()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let mountpoint = self.config.root.display().to_string();
        v1::FilesystemUsage {
            timestamp: i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX),
            fs_id: Some(v1::FilesystemIdentifier { mountpoint }),
            used_bytes: Some(v1::UInt64Value { value: bytes }),
            inodes_used: Some(v1::UInt64Value { value: inodes }),
        }
    }

    fn show(&self, image: &Image) -> Result<v1::Image> {
        let config = self
            .read_config(image)
            .map_err(|error| internal(&error))?
            .config
            .unwrap_or_default();
        let user = config.user.unwrap_or_default();

        // CRI reports no group.
        let user = user.split(':').next().unwrap_or_default();
        let uid = user.parse::<i64>().ok();

        Ok(v1::Image {
            id: image.id.to_string(),
            repo_tags: image.tags.clone(),
            repo_digests: image.digests.clone(),
            size: image.size,
            uid: uid.map(|value| v1::Int64Value { value }),
            username: if uid.is_some() {
                String::new()
            } else {
                user.to_owned()
            },
            spec: None,
            pinned: image.pinned,
        })
    }
}

/// The credentials, unless they are for another registry.
fn credentials_for(image: &Reference, auth: &v1::AuthConfig) -> Option<Credentials> {
    let address = auth
        .server_address
        .trim_start_matches("https://")
        .trim_start_matches("http://");
    let host = address.split('/').next().unwrap_or_default();

    let is_default =
        image.registry == "docker.io" && matches!(host, "index.docker.io" | "registry-1.docker.io");
    if !host.is_empty() && host != image.registry && !is_default {
        return None;
    }

    credentials(
        &auth.username,
        &auth.password,
        &auth.auth,
        &auth.identity_token,
        &auth.registry_token,
    )
}

/// Maps a pull error to the CRI status that the kubelet distinguishes.
fn refused(image: &str, error: &ImageError) -> Error {
    let text = format!("failed to pull image \"{image}\": {}", error_chain(error));
    match error {
        ImageError::Reference { .. } => Error::InvalidArgument(text),
        ImageError::Registry(RegistryError::NotFound { .. }) => Error::NotFound(text),
        ImageError::Registry(RegistryError::Denied(_)) => Error::PermissionDenied(text),
        ImageError::Registry(error) if error.is_transient() => Error::Unavailable(text),
        _ => Error::Internal(text),
    }
}

fn internal(error: &ImageError) -> Error {
    Error::Internal(error_chain(error))
}
