//! Pulls images from registries: the manifest, the configuration, and the missing layers.
//!
//! A layer is unpacked while it is transferred. After a broken connection the transfer resumes at
//! the same byte; the unpacking thread does not notice. The digest is verified at the end, and the
//! layer is committed only then.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::assemble::{Description, Fetched, Fetching, panicked};
use super::digest::{Digest, Hasher};
use super::documents::{self, Config, Descriptor, Document, DocumentError};
use super::reference::{Reference, Which};
use super::registry::{ATTEMPTS, Answer, Credentials, RegistryError, Repository};
use super::store::{Image, Staged};
use super::unpack::{Limits, unpack};
use super::{ImageError, ImageStore};

/// Progress reports of a pull.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// The stored image is up to date.
    UpToDate { digest: Digest },
    /// The manifest was fetched; these are the layers with their sizes.
    Resolved {
        digest: Digest,
        layers: Vec<(Digest, u64)>,
    },
    /// Transferred bytes of a layer.
    Arrived { layer: Digest, bytes: u64 },
    /// A layer is unpacked and verified.
    Unpacked { layer: Digest },
}

pub type Report = Arc<dyn Fn(Progress) + Send + Sync>;

/// How many chunks of a layer are buffered.
const WAITING: usize = 16;
/// After this much progress the attempts are counted from zero.
const GOOD_PROGRESS: u64 = 1 << 20;

impl ImageStore {
    /// Pulls an image, unless it is up to date. The credentials are tried in order.
    pub async fn pull(
        &self,
        image: &Reference,
        credentials: &[Credentials],
        report: &Report,
    ) -> Result<Image, ImageError> {
        if image.registry == super::built_in::REGISTRY {
            let (what, registry) = (image.to_string(), image.registry.clone());
            return self
                .find(&what)
                .ok_or_else(|| RegistryError::NotFound { what, registry }.into());
        }

        let mut denied = None;
        let tried = credentials
            .iter()
            .cloned()
            .map(Some)
            .chain(credentials.is_empty().then_some(None));

        for credentials in tried {
            match self.pull_as(image, credentials, report).await {
                Err(ImageError::Registry(error @ RegistryError::Denied(_))) => denied = Some(error),
                pulled => return pulled,
            }
        }

        Err(denied
            .unwrap_or_else(|| RegistryError::Denied(image.name()))
            .into())
    }

    async fn pull_as(
        &self,
        image: &Reference,
        credentials: Option<Credentials>,
        report: &Report,
    ) -> Result<Image, ImageError> {
        let repository = Repository::open(&self.connector, image, credentials).await?;
        let repository = Arc::new(repository);
        if let Some(here) = self.up_to_date(&repository, image).await? {
            let digest = here.digest_in(image).unwrap_or(here.id);
            report(Progress::UpToDate { digest });
            return Ok(here);
        }

        let top = repository.manifest(&image.which).await?;
        if let Which::Digest(expected) = image.which {
            check("the manifest", expected, top.digest)?;
        }

        let mut manifests = vec![top.bytes.clone()];
        let manifest = match documents::read(&top.media_type, &top.bytes)? {
            Document::Manifest(manifest) => manifest,
            Document::Index(index) => {
                let chosen = index.choose(&self.config.platform)?.digest;
                let found = repository.manifest(&Which::Digest(chosen)).await?;
                check("the manifest of the platform", chosen, found.digest)?;
                let Document::Manifest(manifest) =
                    documents::read(&found.media_type, &found.bytes)?
                else {
                    return Err(DocumentError::MediaType(found.media_type).into());
                };

                manifests.push(found.bytes);

                manifest
            }
        };
        manifest.check_layers()?;

        let config = self.fetch_config(&repository, &manifest.config).await?;
        let diff_ids = Config::read(&config, manifest.layers.len(), &self.config.platform)?
            .rootfs
            .diff_ids;
        let layers = manifest.layers;

        let size = layers.iter().map(|layer| layer.size).sum::<u64>() + manifest.config.size;
        report(Progress::Resolved {
            digest: top.digest,
            layers: layers
                .iter()
                .map(|layer| (layer.digest, layer.size))
                .collect(),
        });

        // The name by digest has the digest of the requested document: the index, if there is one.
        let names = vec![image.clone(), image.at(top.digest)];
        let origin = image.registry.clone();
        let description = Description {
            config,
            diff_ids,
            manifests,
            names,
            size,
            pinned: false,
            origin,
        };

        let fetch = |at: usize, staged: Staged| {
            let limits = self.config.limits.for_compressed(layers[at].size);
            fetch_layer(
                Arc::clone(&repository),
                layers[at].clone(),
                staged,
                limits,
                Arc::clone(report),
            )
        };

        self.assemble(description, fetch).await
    }

    /// The stored image of this name, if the registry still has the same.
    async fn up_to_date(
        &self,
        repository: &Repository,
        image: &Reference,
    ) -> Result<Option<Image>, ImageError> {
        let Some(here) = self.find(&image.to_string()) else {
            return Ok(None);
        };
        let digest = match image.which {
            Which::Digest(digest) => Some(digest),
            // If HEAD fails, the manifest is fetched.
            Which::Tag(_) => match repository.digest_of(&image.which).await {
                Err(error @ (RegistryError::Denied(_) | RegistryError::NotFound { .. })) => {
                    return Err(error.into());
                }
                answer => answer.unwrap_or(None),
            },
        };

        let same =
            digest.is_some_and(|digest| here.digests.contains(&image.at(digest).to_string()));

        Ok(same.then_some(here))
    }

    async fn fetch_config(
        &self,
        repository: &Repository,
        config: &Descriptor,
    ) -> Result<Vec<u8>, ImageError> {
        if self.find(&config.digest.to_string()).is_some() {
            return Ok(self.store.content(config.digest)?);
        }
        let (answer, _) = repository.blob(config.digest, 0).await?;
        let bytes = answer.whole(super::registry::LARGEST_DOCUMENT).await?;
        check("the configuration", config.digest, Digest::of(&bytes))?;
        Ok(bytes)
    }
}

fn fetch_layer(
    repository: Arc<Repository>,
    layer: Descriptor,
    staged: Staged,
    limits: Limits,
    report: Report,
) -> Fetching {
    Box::pin(async move {
        let (send, receive) = mpsc::channel(WAITING);
        let unpacking = tokio::task::spawn_blocking(move || {
            let reader = ChannelReader {
                pieces: receive,
                piece: Bytes::new(),
            };
            let unpacked = unpack(reader, &staged.content(), &limits);
            (staged, unpacked)
        });

        let digest = layer.digest;
        let (transferred, unpacked) =
            tokio::join!(transfer(&repository, &layer, send, &report), unpacking);
        let (staged, unpacked) = unpacked.map_err(panicked)?;

        // If both failed, the transfer error is the cause, unless unpacking failed first and closed
        // the channel.
        if let Err(Stopped::Failed(error)) = transferred {
            return Err(error);
        }

        let (diff_id, unpacked) = unpacked.map_err(|source| ImageError::Unpack {
            layer: digest.to_string(),
            source,
        })?;

        report(Progress::Unpacked { layer: digest });
        let fetched: Fetched = (staged, diff_id, unpacked);

        Ok(fetched)
    })
}

/// Why a transfer ended early.
enum Stopped {
    Failed(ImageError),
    /// The unpacking thread has stopped.
    ReceiverGone,
}

/// Transfers a blob to the unpacking thread, resuming after broken connections, and verifies its
/// digest.
async fn transfer(
    repository: &Repository,
    blob: &Descriptor,
    to: mpsc::Sender<io::Result<Bytes>>,
    report: &Report,
) -> Result<(), Stopped> {
    let mut state = Transfer {
        blob,
        at: 0,
        hasher: Hasher::new(),
        to,
        report,
    };

    let (mut attempt, mut counted_from) = (0, 0);
    loop {
        let failed = match state.resume(repository).await {
            Ok(()) => break,
            Err(Stopped::Failed(ImageError::Registry(error))) if error.is_transient() => error,
            Err(stopped) => return Err(state.abort(stopped).await),
        };

        if state.at >= counted_from + GOOD_PROGRESS {
            (attempt, counted_from) = (0, state.at);
        }

        attempt += 1;

        if attempt == ATTEMPTS {
            return Err(state.abort(Stopped::Failed(failed.into())).await);
        }

        tokio::time::sleep(repository.wait_before(attempt - 1)).await;
    }

    check("the layer", blob.digest, state.hasher.clone().finish()).map_err(Stopped::Failed)
}

struct Transfer<'a> {
    blob: &'a Descriptor,
    at: u64,
    hasher: Hasher,
    to: mpsc::Sender<io::Result<Bytes>>,
    report: &'a Report,
}

impl Transfer<'_> {
    /// Transfers over one connection.
    async fn resume(&mut self, repository: &Repository) -> Result<(), Stopped> {
        let failed = |error: RegistryError| Stopped::Failed(error.into());
        let (answer, continued) = repository
            .blob(self.blob.digest, self.at)
            .await
            .map_err(failed)?;
        let mut skip = if continued { 0 } else { self.at };

        let mut answer: Answer = answer;
        while let Some(mut piece) = answer.piece().await.map_err(failed)? {
            let known = usize::try_from(skip).unwrap_or(usize::MAX).min(piece.len());
            skip -= known as u64;
            drop(piece.split_to(known));
            self.at += piece.len() as u64;

            if self.at > self.blob.size {
                return Err(failed(RegistryError::Long {
                    digest: self.blob.digest,
                    expected: self.blob.size,
                }));
            }

            self.hasher.update(&piece);
            (self.report)(Progress::Arrived {
                layer: self.blob.digest,
                bytes: self.at,
            });

            if !piece.is_empty() && self.to.send(Ok(piece)).await.is_err() {
                return Err(Stopped::ReceiverGone);
            }
        }

        if self.at < self.blob.size {
            let (digest, found, expected) = (self.blob.digest, self.at, self.blob.size);
            return Err(failed(RegistryError::Short {
                digest,
                found,
                expected,
            }));
        }

        Ok(())
    }

    /// Makes the unpacking thread fail.
    async fn abort(&self, stopped: Stopped) -> Stopped {
        drop(self.to.send(Err(io::ErrorKind::UnexpectedEof.into())).await);
        stopped
    }
}

fn check(what: &'static str, expected: Digest, found: Digest) -> Result<(), ImageError> {
    if found == expected {
        Ok(())
    } else {
        Err(ImageError::Digest {
            what,
            expected,
            found,
        })
    }
}

/// A blocking reader of the transferred chunks.
struct ChannelReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Read for ChannelReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let length = self.piece.len().min(into.len());
        into[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
