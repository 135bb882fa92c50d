//! Turns the description of an image into a stored image: fetches the missing layers, then writes
//! the record.
//!
//! Two pulls that need the same layer from the same registry do not both fetch it: each takes the
//! locks of all its layers first, from the lowest on. The chain ID of a layer depends on all layers
//! below it, so two images that share a layer share everything below, and all take the locks in the
//! same order. Registries do not wait for each other: a slow one could delay the layers of all
//! others by naming them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use coracle_base::sync::Mutex;
use tokio::sync::{OwnedMutexGuard, Semaphore, mpsc};
use tokio::task::{JoinError, JoinSet};

use super::digest::{Digest, chain};
use super::reference::Reference;
use super::store::{Image, NewImage, Staged, StoreError};
use super::unpack::Unpacked;
use super::{ImageError, ImageStore};

/// The description of an image, before its layers are fetched.
pub(super) struct Description {
    pub(super) config: Vec<u8>,
    pub(super) diff_ids: Vec<Digest>,
    pub(super) manifests: Vec<Vec<u8>>,
    pub(super) names: Vec<Reference>,
    pub(super) size: u64,
    pub(super) pinned: bool,
    /// The registry it comes from; empty: it was brought in by hand.
    pub(super) origin: String,
}

/// A staged layer, and the digest of its uncompressed archive.
pub(super) type Fetched = (Staged, Digest, Unpacked);

pub(super) type Fetching = Pin<Box<dyn Future<Output = Result<Fetched, ImageError>> + Send>>;

/// The locks of layers that are being fetched.
#[derive(Default)]
pub(super) struct LayerLocks(Mutex<BTreeMap<Fetch, Weak<tokio::sync::Mutex<()>>>>);

/// Where a layer comes from, and which it is.
type Fetch = (String, Digest);

impl LayerLocks {
    async fn lock(&self, origin: &str, layers: &[Digest]) -> Vec<OwnedMutexGuard<()>> {
        let locks: Vec<_> = {
            let mut known = self.0.lock();
            known.retain(|_, lock| lock.strong_count() > 0);

            let mut lock_of = |layer: &Digest| {
                let known = known.entry((origin.to_owned(), *layer)).or_default();
                known.upgrade().unwrap_or_else(|| {
                    let fresh = Arc::new(tokio::sync::Mutex::new(()));
                    *known = Arc::downgrade(&fresh);
                    fresh
                })
            };

            layers.iter().map(&mut lock_of).collect()
        };

        let mut guards = Vec::with_capacity(locks.len());
        for lock in locks {
            guards.push(lock.lock_owned().await);
        }

        guards
    }
}

impl ImageStore {
    /// Fetches missing layers and stores the image. `fetch` is called with the index of a layer in
    /// the stack.
    ///
    /// # Cancellation Dropping the future stops the transfer; unpacked layers are deleted.
    pub(super) async fn assemble(
        &self,
        description: Description,
        fetch: impl Fn(usize, Staged) -> Fetching,
    ) -> Result<Image, ImageError> {
        let stack = chain(&description.diff_ids);
        let held = self.store.hold(&stack);
        let guards = self.locks.lock(&description.origin, &stack).await;
        let made = self.fetch_and_record(description, stack, fetch).await;
        drop(guards);
        drop(held);
        if made.is_err() {
            let store = Arc::clone(&self.store);
            on_disk(move || store.sweep()).await?;
        }
        made
    }

    async fn fetch_and_record(
        &self,
        description: Description,
        stack: Vec<Digest>,
        fetch: impl Fn(usize, Staged) -> Fetching,
    ) -> Result<Image, ImageError> {
        let (gone, mut all_gone) = mpsc::channel(1);
        let fetched = self
            .fetch_missing(&description.diff_ids, &stack, fetch, gone)
            .await;
        if fetched.is_err() {
            // Other layers may still be unpacking: wait until everything is deleted before the
            // error is returned.
            all_gone.recv().await;
        }

        let layers = fetched?;
        let store = Arc::clone(&self.store);

        on_disk(move || {
            if !layers.is_empty() {
                store.sync()?;
            }

            for (at, (staged, diff_id, unpacked)) in layers {
                store.commit(&staged, diff_id, &unpacked, &stack[..=at])?;
            }

            let Description {
                config,
                manifests,
                names,
                size,
                pinned,
                ..
            } = description;

            store.put(NewImage {
                config: &config,
                manifests,
                names,
                layers: stack,
                size,
                pinned,
            })
        })
        .await
    }

    /// Fetches missing layers, a limited number in parallel. `gone` is closed when nothing is
    /// staged any more.
    async fn fetch_missing(
        &self,
        diff_ids: &[Digest],
        stack: &[Digest],
        fetch: impl Fn(usize, Staged) -> Fetching,
        gone: mpsc::Sender<()>,
    ) -> Result<BTreeMap<usize, Fetched>, ImageError> {
        let missing = (0..stack.len()).filter(|at| !self.store.has_layer(stack[*at]));
        let permits = Arc::new(Semaphore::new(self.config.parallel.max(1)));

        let mut fetching = JoinSet::new();
        for at in missing {
            let staged = self.store.stage()?.with_deletion_signal(gone.clone());
            let (permits, layer, expected) =
                (Arc::clone(&permits), fetch(at, staged), diff_ids[at]);
            fetching.spawn(async move {
                let _permit = permits.acquire_owned().await;
                let fetched = layer.await?;
                let found = fetched.1;

                let what = "the layer's plain archive";
                if found == expected {
                    Ok((at, fetched))
                } else {
                    Err(ImageError::Digest {
                        what,
                        expected,
                        found,
                    })
                }
            });
        }

        let mut layers = BTreeMap::new();
        while let Some(fetched) = fetching.join_next().await {
            let (at, fetched) = fetched.map_err(panicked)??;
            layers.insert(at, fetched);
        }

        Ok(layers)
    }
}

/// Disk work must not block the threads that serve requests.
pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ImageError> {
    Ok(tokio::task::spawn_blocking(work)
        .await
        .map_err(panicked)??)
}

/// These tasks are never aborted individually, so a join error is a panic.
pub(super) fn panicked(_: JoinError) -> ImageError {
    ImageError::Panicked
}
