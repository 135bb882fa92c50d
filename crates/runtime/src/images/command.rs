//! Image commands of the CLI (import, pull, remove). They run in the process that owns the image
//! store: in the server if one is running, else in this process.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::registry::Connector;
use super::{
    Credentials, Image, ImageError, ImageStore, ImagesConfig, ImportOptions, Registries, Report,
    socket,
};

/// A change to the image store. Paths are absolute: the server may have another working directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ImageCommand {
    /// Imports an archive or a layout.
    Import {
        path: PathBuf,
        name: Option<String>,
        pinned: bool,
    },
    /// Pulls from a registry, with these connection settings.
    Pull {
        image: String,
        credentials: Vec<Credentials>,
        authorities: Vec<PathBuf>,
        plain: Vec<String>,
    },
    /// Removes an image with all its names.
    Remove { image: String },
}

impl ImageCommand {
    /// The outcome, as in "the server imported X".
    pub(super) fn outcome(&self) -> String {
        match self {
            ImageCommand::Import { path, .. } => format!("imported {path:?}"),
            ImageCommand::Pull { image, .. } => format!("pulled {image:?}"),
            ImageCommand::Remove { image } => format!("removed {image:?}"),
        }
    }

    /// Runs the command on the image store, in the server if that owns the store. Returns the
    /// affected images.
    pub async fn run(
        &self,
        config: ImagesConfig,
        report: &Report,
    ) -> Result<Vec<Image>, ImageError> {
        match ImageStore::open_if_free(config.clone()) {
            Err(ImageError::Store(error)) if error.is_taken() => {
                match socket::connect(&config.root).await {
                    Some(connection) => socket::send(connection, self, report).await,
                    None => ImageStore::open(config)?.execute(self, report).await,
                }
            }
            opened => opened?.execute(self, report).await,
        }
    }
}

impl ImageStore {
    pub(super) async fn execute(
        &self,
        command: &ImageCommand,
        report: &Report,
    ) -> Result<Vec<Image>, ImageError> {
        match command {
            ImageCommand::Import { path, name, pinned } => {
                let name = name.as_deref().map(ImageError::name).transpose()?;
                self.import(
                    path,
                    &ImportOptions {
                        name,
                        pinned: *pinned,
                    },
                )
                .await
            }
            ImageCommand::Pull {
                image,
                credentials,
                authorities,
                plain,
            } => {
                let image = ImageError::name(image)?;
                let registries = Registries {
                    authorities: authorities.clone(),
                    plain: plain.clone(),
                    ..self.config.registries.clone()
                };

                Ok(vec![
                    self.with_registries(registries)
                        .pull(&image, credentials, report)
                        .await?,
                ])
            }
            ImageCommand::Remove { image } => {
                let found = self
                    .find(image)
                    .ok_or_else(|| ImageError::Absent(image.clone()))?;
                self.remove(&found).await?;
                Ok(vec![found])
            }
        }
    }

    /// The same store, with other registry settings.
    fn with_registries(&self, registries: Registries) -> ImageStore {
        ImageStore {
            connector: Arc::new(Connector::new(registries.clone())),
            config: ImagesConfig {
                registries,
                ..self.config.clone()
            },
            store: Arc::clone(&self.store),
            locks: Arc::clone(&self.locks),
        }
    }
}
