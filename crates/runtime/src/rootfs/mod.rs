//! Root filesystems of containers: the layers of an image with a writable one on top.
//!
//! The writable layer is kept in the image store until the container is removed; the mount is in a
//! folder that a reboot empties, and is recreated when it is missing.

mod mount_points;
mod overlay;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use coracle_cri::v1::ImageSpec;
use coracle_files::{Usage, open_folder, private, usage};

use crate::images::{Digest, ImageStore};
use crate::ports::{ImageForContainer, RootFs, RootFsError, RootFsUsage};

/// The root filesystems of one node.
pub struct OverlayRootFs {
    images: Arc<ImageStore>,
    mounts: PathBuf,
}

impl OverlayRootFs {
    /// `mounts` is the folder below which root filesystems are mounted.
    pub fn new(images: Arc<ImageStore>, mounts: PathBuf) -> Self {
        Self { images, mounts }
    }
}

#[async_trait]
impl RootFs for OverlayRootFs {
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageForContainer, RootFsError> {
        let wanted = image.image.clone();
        let images = Arc::clone(&self.images);
        blocking(move || images.for_container(&wanted).map_err(io::Error::other))
            .await
            .map_err(failed("read the image of", ""))?
            .ok_or_else(|| RootFsError::NoSuchImage(image.image.clone()))
    }

    async fn prepare(
        &self,
        container: &str,
        image: &ImageForContainer,
        mount_points: &[String],
    ) -> Result<PathBuf, RootFsError> {
        let id: Digest = image
            .id
            .parse()
            .map_err(|_| RootFsError::NoSuchImage(image.id.clone()))?;

        check_id(container)?;
        let (images, name) = (Arc::clone(&self.images), container.to_owned());
        let (at, places) = (
            self.mounts.join(container).join("rootfs"),
            mount_points.to_vec(),
        );

        let made = blocking(move || {
            make(&images, &name, id, &places, &at).map(|found| found.map(|()| at))
        });

        made.await
            .map_err(failed("create", container))?
            .ok_or_else(|| RootFsError::NoSuchImage(image.id.clone()))
    }

    async fn remove(&self, container: &str) -> Result<(), RootFsError> {
        check_id(container)?;
        let (images, name) = (Arc::clone(&self.images), container.to_owned());

        let folder = self.mounts.join(container);
        blocking(move || {
            overlay::unmount_if_mounted(&folder.join("rootfs"))?;
            absent_is_fine(std::fs::remove_dir(folder.join("rootfs")))?;
            absent_is_fine(std::fs::remove_dir(folder))?;
            images
                .store()
                .remove_container(&name)
                .map_err(io::Error::other)
        })
        .await
        .map_err(failed("remove", container))
    }

    async fn containers(&self) -> Result<Vec<String>, RootFsError> {
        Ok(self.images.store().containers())
    }

    async fn usage(&self, container: &str) -> Result<RootFsUsage, RootFsError> {
        check_id(container)?;
        let upper = self.images.store().container_path(container).join("upper");
        let (bytes, inodes) = blocking(move || disk_usage(&upper))
            .await
            .map_err(failed("measure", container))?;
        Ok(RootFsUsage { bytes, inodes })
    }
}

/// Returns `None` if the image is gone.
fn make(
    images: &ImageStore,
    container: &str,
    image: Digest,
    places: &[String],
    at: &Path,
) -> io::Result<Option<()>> {
    let store = images.store();
    if store.layers_of(container).is_none()
        && !store
            .add_container(container, image)
            .map_err(io::Error::other)?
    {
        return Ok(None);
    }

    let layers = store.layers_of(container).unwrap_or_default();
    let folder = store.container_path(container);

    // Programs of an image may be setuid: no user of the host may reach them.
    at.parent().map_or(Ok(()), private::folder)?;
    std::fs::create_dir_all(at)?;

    if overlay::is_mounted(at)? {
        return Ok(Some(()));
    }

    let (upper, work) = (folder.join("upper"), folder.join("work"));
    let first = !upper.exists();
    std::fs::create_dir_all(&upper)?;
    std::fs::create_dir_all(&work)?;
    let mut lower: Vec<PathBuf> = layers
        .iter()
        .rev()
        .map(|layer| store.layer_content(*layer))
        .collect();

    if lower.is_empty() {
        // An image without layers is valid, an overlay without is not.
        lower.push(folder.join("empty"));
        std::fs::create_dir_all(folder.join("empty"))?;
    }

    if first {
        take_over_root(&lower[0], &upper)?;
    }

    lower.extend(mount_points::layer(
        &store.path("mount-points"),
        &store.staging_path(),
        places,
    )?);

    overlay::mount(&lower, &upper, &work, at)?;

    Ok(Some(()))
}

/// The root of the mount is that of the writable layer: it gets the owner and mode of the highest
/// layer.
fn take_over_root(from: &Path, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(from)?;
    std::os::unix::fs::chown(to, Some(found.uid()), Some(found.gid()))?;
    std::fs::set_permissions(to, found.permissions())
}

/// The disk usage below a folder: bytes and inodes. A container may change it concurrently: missing
/// entries are skipped, and if the walk fails, the partial sum is returned.
pub(crate) fn disk_usage(folder: &Path) -> io::Result<(u64, u64)> {
    let Some(top) = gone_is_none(open_folder(folder))? else {
        return Ok((0, 0));
    };
    let (Usage { bytes, inodes }, walked) = usage(top);
    if let Err(error) = walked {
        tracing::warn!(path = %folder.display(), %error, "cannot measure disk usage of the whole directory; reported usage is too low");
    }
    Ok((bytes, inodes))
}

fn gone_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    gone_is_none(result).map(drop)
}

/// IDs become folder names.
fn check_id(container: &str) -> Result<(), RootFsError> {
    let good = !container.is_empty()
        && container
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let refused = || failed("name", container)(io::ErrorKind::InvalidInput.into());
    if good { Ok(()) } else { Err(refused()) }
}

/// Mounts, deletions and measurements must not block the threads that serve requests.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

fn failed(action: &'static str, container: &str) -> impl FnOnce(io::Error) -> RootFsError {
    let container = container.to_owned();
    move |source| RootFsError::Io {
        action,
        container,
        source,
    }
}
