//! Imports images from files: archives of `docker save` and OCI layouts, each as a folder or as an
//! archive, compressed or not.

mod preload;
mod source;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::assemble::{Description, Fetching, panicked};
use super::digest::Digest;
use super::documents::{self, Config, Descriptor, Document, DocumentError, Index, Manifest};
use super::reference::{Reference, Which};
use super::store::{Image, Staged};
use super::unpack::{Limits, unpack};
use super::{ImageError, ImageStore};
pub use preload::PreloadWatch;
use source::Source;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read {0:?}")]
    Read(PathBuf, #[source] std::io::Error),
    #[error("cannot read {0:?} as a tar archive (plain, gzip or zstd)")]
    Archive(PathBuf, #[source] std::io::Error),
    #[error("{0:?} not found in the archive")]
    Absent(String),
    #[error("{0:?} is too large for a manifest or configuration")]
    TooLarge(String),
    #[error("{0} lists no image: save it again with an image name")]
    Empty(&'static str),
    #[error("neither a docker archive (manifest.json) nor an OCI layout (index.json)")]
    Neither,
}

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// A name for an image without one.
    pub name: Option<Reference>,
    pub pinned: bool,
}

impl ImageStore {
    /// Imports all images of an archive or a layout that can run here.
    pub async fn import(
        &self,
        path: &Path,
        options: &ImportOptions,
    ) -> Result<Vec<Image>, ImageError> {
        // The folder for a decompressed archive is deleted with this call.
        let staged = self.store.stage()?;
        let imported = self.import_through(&staged, path, options).await;
        staged.discard().await;
        imported
    }

    async fn import_through(
        &self,
        staged: &Staged,
        path: &Path,
        options: &ImportOptions,
    ) -> Result<Vec<Image>, ImageError> {
        let (path, folder, limit) = (path.to_owned(), staged.content(), self.config.limits.bytes);
        let opened = tokio::task::spawn_blocking(move || Source::open(&path, &folder, limit));
        let source = Arc::new(opened.await.map_err(panicked)??);
        let described = self.describe(&source, options)?;

        let mut images = Vec::new();
        for (description, layers) in described {
            let fetch = |at: usize, staged: Staged| {
                let (source, limits) = (Arc::clone(&source), self.config.limits.clone());
                read_layer(source, layers[at].clone(), staged, limits)
            };
            images.push(self.assemble(description, fetch).await?);
        }

        Ok(images)
    }

    fn describe(
        &self,
        source: &Source,
        options: &ImportOptions,
    ) -> Result<Vec<(Description, Vec<String>)>, ImageError> {
        if source.has("index.json") {
            self.describe_layout(source, options)
        } else if source.has("manifest.json") {
            self.describe_docker(source, options)
        } else {
            Err(ImportError::Neither.into())
        }
    }

    /// What `docker save` writes: a list of images with the names of their files.
    fn describe_docker(
        &self,
        source: &Source,
        options: &ImportOptions,
    ) -> Result<Vec<(Description, Vec<String>)>, ImageError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Saved {
            config: String,
            #[serde(default)]
            repo_tags: Option<Vec<String>>,
            layers: Vec<String>,
        }

        let saved: Vec<Saved> =
            documents::json("list of images", &source.document("manifest.json")?)?;
        if saved.is_empty() {
            return Err(ImportError::Empty("manifest.json").into());
        }

        let describe = |saved: Saved| {
            let bytes = source.document(&saved.config)?;
            let config = Config::read(&bytes, saved.layers.len(), &self.config.platform)?;
            let tags = saved.repo_tags.unwrap_or_default();
            let mut names = tags
                .iter()
                .map(|tag| ImageError::name(tag))
                .collect::<Result<Vec<_>, _>>()?;
            names.extend(options.name.clone());

            let sizes = saved.layers.iter().map(|layer| Ok(source.file(layer)?.1));
            let size = sizes.sum::<Result<u64, ImportError>>()?;
            let diff_ids = config.rootfs.diff_ids;
            let pinned = options.pinned;

            Ok((
                Description {
                    config: bytes,
                    diff_ids,
                    manifests: vec![],
                    names,
                    size,
                    pinned,
                    origin: String::new(),
                },
                saved.layers,
            ))
        };

        saved.into_iter().map(describe).collect()
    }

    /// An OCI layout: an index of manifests, and blobs by digest.
    fn describe_layout(
        &self,
        source: &Source,
        options: &ImportOptions,
    ) -> Result<Vec<(Description, Vec<String>)>, ImageError> {
        let index: Index = documents::json("index", &source.document("index.json")?)?;
        if index.manifests.is_empty() {
            return Err(ImportError::Empty("index.json").into());
        }

        let wanted = &self.config.platform;
        let alone = index.manifests.len() == 1;
        let fits = |descriptor: &&Descriptor| {
            alone
                || descriptor.platform.is_none()
                || Index {
                    manifests: vec![(*descriptor).clone()],
                }
                .choose(wanted)
                .is_ok()
        };

        let described = index.manifests.iter().filter(fits).map(|top| {
            let name = name_of(top).or_else(|| options.name.clone());
            self.describe_manifest(source, top, name.as_ref(), options.pinned)
        });

        let described = described.collect::<Result<Vec<_>, _>>()?;
        if described.is_empty() {
            Err(DocumentError::NoPlatform(wanted.to_string()).into())
        } else {
            Ok(described)
        }
    }

    fn describe_manifest(
        &self,
        source: &Source,
        top: &Descriptor,
        name: Option<&Reference>,
        pinned: bool,
    ) -> Result<(Description, Vec<String>), ImageError> {
        let mut bytes = blob(source, top)?;
        let mut manifests = vec![bytes.clone()];

        let manifest: Manifest = match documents::read(&top.media_type, &bytes)? {
            Document::Manifest(manifest) => manifest,
            Document::Index(index) => {
                let chosen = index.choose(&self.config.platform)?;
                bytes = blob(source, chosen)?;
                manifests.push(bytes.clone());
                documents::json("manifest", &bytes)?
            }
        };
        manifest.check_layers()?;

        let config_bytes = blob(source, &manifest.config)?;
        let config = Config::read(&config_bytes, manifest.layers.len(), &self.config.platform)?;

        // A layout is verified by digest, so the name with digest can be added too.
        let names = name
            .into_iter()
            .flat_map(|name| [name.clone(), name.at(top.digest)])
            .collect();

        let size =
            manifest.layers.iter().map(|layer| layer.size).sum::<u64>() + manifest.config.size;
        let diff_ids = config.rootfs.diff_ids;
        let layers = manifest
            .layers
            .iter()
            .map(|layer| blob_name(layer.digest))
            .collect();

        let origin = String::new();
        Ok((
            Description {
                config: config_bytes,
                diff_ids,
                manifests,
                names,
                size,
                pinned,
                origin,
            },
            layers,
        ))
    }
}

fn read_layer(source: Arc<Source>, name: String, staged: Staged, limits: Limits) -> Fetching {
    Box::pin(async move {
        let unpacking = tokio::task::spawn_blocking(move || {
            let (file, _) = source.file(&name)?;
            let (found, unpacked) =
                unpack(file, &staged.content(), &limits).map_err(|source| ImageError::Unpack {
                    layer: name,
                    source,
                })?;
            Ok((staged, found, unpacked))
        });

        unpacking.await.map_err(panicked)?
    })
}

fn blob(source: &Source, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
    let bytes = source.document(&blob_name(descriptor.digest))?;
    let found = Digest::of(&bytes);

    let (what, expected) = ("a document of the layout", descriptor.digest);
    if found == expected {
        Ok(bytes)
    } else {
        Err(ImageError::Digest {
            what,
            expected,
            found,
        })
    }
}

fn blob_name(digest: Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// The name of an image in a layout. Some tools write only a tag, which is ignored.
fn name_of(descriptor: &Descriptor) -> Option<Reference> {
    let annotation = |name: &str| descriptor.annotations.get(name);
    let whole =
        annotation("io.containerd.image.name").and_then(|name| name.parse::<Reference>().ok());
    let given =
        annotation("org.opencontainers.image.ref.name").filter(|name| name.contains(['/', ':']));
    whole
        .or_else(|| given?.parse().ok())
        .filter(|name: &Reference| matches!(name.which, Which::Tag(_)))
}
