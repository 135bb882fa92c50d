//! The image store: pull, import, list and remove images.
//!
//! An image is a configuration and a stack of layers. [`assemble`] fetches the missing layers in
//! parallel, [unpacks](unpack) each into a folder of its own while it is transferred, verifies
//! every digest, and only then commits layers and image to the [`store`]. [`import`] reads archives
//! and layouts, [`pull`] downloads from a [`registry`]. A failure leaves nothing behind. One
//! process owns a store; other processes send it their [commands](command) over a [socket].

mod assemble;
mod built_in;
mod command;
mod cri;
mod digest;
mod documents;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod import;
mod legible;
mod pull;
mod reference;
mod registry;
mod socket;
mod store;
mod unpack;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

pub use command::ImageCommand;
pub use digest::{Digest, InvalidDigest};
pub use documents::{DocumentError, Platform};
pub use import::{ImportError, ImportOptions, PreloadWatch};
pub use pull::{Progress, Report};
pub use reference::{Reference, ReferenceError, Which};
pub use registry::{
    Credentials, HostsError, Keyring, Proxies, ProxyError, Registries, RegistryError,
};
pub use store::{Image, StoreError};
pub use unpack::{Limits, SparseError, UnpackError};

use crate::ports::{ImageConfig, ImageForContainer};
use assemble::LayerLocks;
use documents::Config;
use registry::Connector;
use store::Store;

/// Configuration of the image store.
#[derive(Clone, Debug)]
pub struct ImagesConfig {
    /// The folder of the store. It survives reboots.
    pub root: PathBuf,
    pub limits: Limits,
    pub platform: Platform,
    /// How many layers are fetched at once for one image.
    pub parallel: usize,
    pub registries: Registries,
    /// The wall clock.
    pub now: fn() -> SystemTime,
}

impl ImagesConfig {
    pub fn new(root: PathBuf, now: fn() -> SystemTime) -> Self {
        let (limits, platform) = (Limits::default(), Platform::of_this_machine());
        Self {
            root,
            limits,
            platform,
            parallel: 3,
            registries: Registries::default(),
            now,
        }
    }
}

/// The images of one node.
pub struct ImageStore {
    config: ImagesConfig,
    store: Arc<Store>,
    locks: Arc<LayerLocks>,
    connector: Arc<Connector>,
}

/// Errors of the image store.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("couldn't parse image name {name:?}")]
    Reference {
        name: String,
        source: ReferenceError,
    },
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot unpack layer {layer}")]
    Unpack { layer: String, source: UnpackError },
    #[error("digest mismatch of {what}: expected {expected}, got {found}")]
    Digest {
        what: &'static str,
        expected: Digest,
        found: Digest,
    },
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("cannot read the files of built-in image {name}")]
    BuiltIn {
        name: String,
        source: std::io::Error,
    },
    #[error("layer unpack thread panicked")]
    Panicked,
    #[error("no such image: {0}")]
    Absent(String),
    /// The error that the server returned.
    #[error("{0}")]
    Elsewhere(String),
}

impl ImageError {
    /// Parses an image reference.
    fn name(text: &str) -> Result<Reference, Self> {
        text.parse().map_err(|source| Self::Reference {
            name: text.to_owned(),
            source,
        })
    }
}

impl ImageStore {
    /// Opens the store, and deletes incomplete entries of a crash. Blocks on the disk.
    pub fn open(config: ImagesConfig) -> Result<Arc<Self>, ImageError> {
        let store = Store::open(&config.root, true)?;
        Ok(Self::with(config, store))
    }

    /// The same, without waiting for another process to release the lock.
    fn open_if_free(config: ImagesConfig) -> Result<Arc<Self>, ImageError> {
        let store = Store::open(&config.root, false)?;
        Ok(Self::with(config, store))
    }

    /// Opens the store for teardown. On a read-only disk it is opened read-only.
    pub fn open_for_teardown(config: ImagesConfig) -> Result<Arc<Self>, ImageError> {
        let store = Store::open_for_teardown(&config.root)?;
        Ok(Self::with(config, store))
    }

    /// Opens the store read-only, also while another process uses it.
    pub fn open_read_only(config: ImagesConfig) -> Result<Arc<Self>, ImageError> {
        let store = Store::open_read_only(&config.root)?;
        Ok(Self::with(config, store))
    }

    fn with(config: ImagesConfig, store: Arc<Store>) -> Arc<Self> {
        let connector = Arc::new(Connector::new(config.registries.clone()));
        Arc::new(Self {
            config,
            store,
            locks: Arc::default(),
            connector,
        })
    }

    /// All images, by id.
    pub fn list(&self) -> Vec<Image> {
        self.store.images()
    }

    /// An image by its id, the beginning of its id, or one of its names.
    pub fn find(&self, text: &str) -> Option<Image> {
        self.store.find(text)
    }

    /// Removes an image with all its names. Layers in use by other images or containers stay.
    pub async fn remove(&self, image: &Image) -> Result<(), ImageError> {
        let (store, id) = (Arc::clone(&self.store), image.id);
        assemble::on_disk(move || store.remove(id)).await
    }

    /// The configuration of an image, byte for byte.
    pub fn config_of(&self, image: &Image) -> Result<Vec<u8>, ImageError> {
        Ok(self.store.content(image.id)?)
    }

    /// The image as containers need it; none if it does not exist.
    pub(crate) fn for_container(
        &self,
        text: &str,
    ) -> Result<Option<ImageForContainer>, ImageError> {
        let Some(image) = self.find(text) else {
            return Ok(None);
        };
        let reference = image
            .digests
            .first()
            .cloned()
            .unwrap_or_else(|| image.id.to_string());

        let config = self.read_config(&image)?.config.unwrap_or_default();
        let config = ImageConfig {
            entrypoint: config.entrypoint.unwrap_or_default(),
            command: config.cmd.unwrap_or_default(),
            environment: config.env.unwrap_or_default(),
            working_dir: config.working_dir.unwrap_or_default(),
            user: config.user.unwrap_or_default(),
            stop_signal: config.stop_signal.unwrap_or_default(),
            volumes: config.volumes.unwrap_or_default().into_keys().collect(),
        };

        Ok(Some(ImageForContainer {
            id: image.id.to_string(),
            reference,
            config,
        }))
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn read_config(&self, image: &Image) -> Result<Config, ImageError> {
        Ok(documents::json(
            "image's configuration",
            &self.config_of(image)?,
        )?)
    }
}
