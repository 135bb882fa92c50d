//! Images on disk.
//!
//! ```text
//! images/HEX.json        one record per image, under its id
//! content/HEX            configurations, manifests and indexes, byte for byte
//! layers/HEX/diff        a layer, under the name of its stack; its size is in `layer.json`
//! containers/ID/         a container's writable layer, and the layers it uses
//! mount-points/CHOICE    mount points, as a layer below those of the image
//! staging/N              layers being unpacked; emptied at start
//! lock, socket           of the process that owns the store
//! ```
//!
//! A layer is built in `staging` and committed by a rename. Content and layers are written before
//! the record that refers to them and deleted after it. What no record, container or work in
//! progress refers to is garbage-collected.

mod containers;
mod files;
mod layers;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use coracle_base::sync::Mutex;
use coracle_files::remove_tree;

use super::digest::Digest;
use super::reference::{Reference, Which};
pub(crate) use layers::Staged;
pub use record::Image;
pub(crate) use record::Layer;

pub(crate) struct Store {
    root: PathBuf,
    state: Mutex<State>,
    next: AtomicU64,
    /// Held while a layer is committed.
    committing: Mutex<()>,
    /// The lock of the store; none if read-only.
    lock: Option<std::fs::File>,
}

#[derive(Default)]
struct State {
    images: BTreeMap<Digest, Image>,
    layers: BTreeMap<Digest, Layer>,
    /// Layers that work in progress needs, and how many times.
    held: BTreeMap<Digest, usize>,
    /// The image layers of each container.
    containers: BTreeMap<String, Vec<Digest>>,
}

/// A failed operation of the store.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path:?}")]
pub struct StoreError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl StoreError {
    /// Whether another process has the lock.
    pub(crate) fn is_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::WouldBlock
    }

    fn is_read_only(&self) -> bool {
        self.source.kind() == io::ErrorKind::ReadOnlyFilesystem
    }
}

/// An image to store. Its layers are committed.
pub(crate) struct NewImage<'a> {
    pub(crate) config: &'a [u8],
    pub(crate) manifests: Vec<Vec<u8>>,
    pub(crate) names: Vec<Reference>,
    pub(crate) layers: Vec<Digest>,
    pub(crate) size: u64,
    pub(crate) pinned: bool,
}

impl Store {
    /// Opens and locks a store, and deletes incomplete entries of a crash. With `wait`, waits
    /// briefly for the lock.
    pub(crate) fn open(root: &Path, wait: bool) -> Result<Arc<Self>, StoreError> {
        let lock = files::lock(root, wait).map_err(failed("lock", root))?;
        let store = Self::new(root, Some(lock));
        remove_tree(&store.path("staging")).map_err(failed("empty", &store.path("staging")))?;

        for folder in ["images", "content", "layers", "containers", "staging"] {
            let path = store.path(folder);
            std::fs::create_dir_all(&path).map_err(failed("create", &path))?;
        }

        store.read_containers()?;
        store.read_layers()?;
        store.read_images()?;
        let store = Arc::new(store);
        store.sweep()?;

        Ok(store)
    }

    /// Opens a store for teardown; read-only if the disk is.
    pub(crate) fn open_for_teardown(root: &Path) -> Result<Arc<Self>, StoreError> {
        match Self::open(root, true) {
            Err(error) if error.is_read_only() => Self::open_read_only(root),
            opened => opened,
        }
    }

    /// Opens a store read-only, without the lock. Incomplete entries are skipped.
    pub(crate) fn open_read_only(root: &Path) -> Result<Arc<Self>, StoreError> {
        let store = Self::new(root, None);
        if root.join("images").exists() {
            store.read_layers()?;
            store.read_images()?;
        }
        Ok(Arc::new(store))
    }

    fn new(root: &Path, lock: Option<std::fs::File>) -> Self {
        Self {
            root: root.to_owned(),
            state: Mutex::default(),
            next: AtomicU64::new(0),
            committing: Mutex::default(),
            lock,
        }
    }

    /// Deletes an incomplete entry; only skips it if the store is read-only.
    fn delete_incomplete(&self, path: &Path) -> Result<(), StoreError> {
        if self.lock.is_none() {
            return Ok(());
        }
        tracing::warn!(?path, "incomplete entry in the image store; deleting it");
        remove_tree(path).map_err(failed("delete", path))
    }

    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    pub(crate) fn images(&self) -> Vec<Image> {
        self.state().images.values().cloned().collect()
    }

    /// Finds an image by its ID, a prefix of its ID, or a name.
    pub(crate) fn find(&self, text: &str) -> Option<Image> {
        let state = self.state();
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        if let Ok(id) = Digest::from_hex(hex) {
            return state.images.get(&id).cloned();
        }

        if let Ok(reference) = text.parse::<Reference>()
            && let Some(image) = state
                .images
                .values()
                .find(|image| image.has_name(&reference))
        {
            return Some(image.clone());
        }

        let is_part = hex.len() >= SHORTEST_ID && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut fitting = state
            .images
            .values()
            .filter(|image| is_part && image.id.hex().starts_with(hex));

        fitting.next().filter(|_| fitting.next().is_none()).cloned()
    }

    /// The document with a digest: a configuration, a manifest, or an index.
    pub(crate) fn content(&self, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let path = self.content_path(digest);
        std::fs::read(&path).map_err(failed("read", &path))
    }

    /// Stores an image, or adds names to an existing one. Tags are moved from other images.
    pub(crate) fn put(&self, new: NewImage<'_>) -> Result<Image, StoreError> {
        let id = self.write_content(new.config)?;
        let manifests = new
            .manifests
            .iter()
            .map(|bytes| self.write_content(bytes))
            .collect::<Result<Vec<_>, _>>()?;

        let mut state = self.state();
        let change = state
            .images
            .values()
            .map(|image| image.change)
            .max()
            .map_or(0, |change| change + 1);

        let known = state.images.get(&id).cloned();
        let mut image = known.clone().unwrap_or(Image {
            id,
            tags: vec![],
            digests: vec![],
            manifests: vec![],
            layers: new.layers,
            size: new.size,
            pinned: false,
            change,
        });
        image.pinned |= new.pinned;

        new.names.iter().for_each(|name| image.add_name(name));
        image.manifests.extend(manifests);
        image.manifests.sort();
        image.manifests.dedup();

        // Built-in images are added at every start, also on a full disk: an unchanged record is not
        // rewritten.
        if known.as_ref() == Some(&image) {
            return Ok(image);
        }

        image.change = change;
        self.write(&mut state, image.clone())?;
        self.take_tags_from_others(&mut state, &image)?;

        Ok(image)
    }

    /// Removes an image with all its names, and its unused layers.
    pub(crate) fn remove(&self, id: Digest) -> Result<(), StoreError> {
        let path = self.record_path(id);
        {
            let mut state = self.state();
            files::delete(&path).map_err(failed("delete", &path))?;
            state.images.remove(&id);
        }
        self.sweep()
    }

    fn take_tags_from_others(&self, state: &mut State, image: &Image) -> Result<(), StoreError> {
        let others = state.images.values().filter(|other| other.id != image.id);
        let previous_owners: Vec<Image> = others
            .filter(|other| other.tags.iter().any(|tag| image.tags.contains(tag)))
            .cloned()
            .collect();
        for mut other in previous_owners {
            other.tags.retain(|tag| !image.tags.contains(tag));
            self.write(state, other)?;
        }
        Ok(())
    }

    fn write(&self, state: &mut State, image: Image) -> Result<(), StoreError> {
        let path = self.record_path(image.id);
        let bytes = serde_json::to_vec(&image).expect("a record of strings and numbers serializes");
        files::write_synced(&path, &bytes).map_err(failed("write", &path))?;
        state.images.insert(image.id, image);
        Ok(())
    }

    fn write_content(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(bytes);
        let path = self.content_path(digest);
        if !path.exists() {
            files::write_synced(&path, bytes).map_err(failed("write", &path))?;
        }
        Ok(digest)
    }

    /// Reads all records. An incomplete image is deleted: it can be pulled again.
    fn read_images(&self) -> Result<(), StoreError> {
        let folder = self.path("images");
        let mut found: Vec<Image> = Vec::new();
        for name in files::names(&folder).map_err(failed("read", &folder))? {
            let path = folder.join(&name);
            let bytes = files::unless_absent(std::fs::read(&path))
                .map_err(failed("read", &path))?
                .unwrap_or_default();
            let image = serde_json::from_slice::<Image>(&bytes)
                .ok()
                .filter(|image| {
                    let state = self.state();
                    let has_content = image
                        .manifests
                        .iter()
                        .chain([&image.id])
                        .all(|digest| self.content_path(*digest).exists());

                    has_content
                        && image
                            .layers
                            .iter()
                            .all(|layer| state.layers.contains_key(layer))
                });

            match image {
                Some(image) => found.push(image),
                None => self.delete_incomplete(&path)?,
            }
        }

        found.sort_by_key(|image| std::cmp::Reverse(image.change));
        let mut claimed = BTreeSet::new();
        for mut image in found {
            image.tags.retain(|tag| claimed.insert(tag.clone()));
            self.state().images.insert(image.id, image);
        }

        Ok(())
    }

    fn record_path(&self, id: Digest) -> PathBuf {
        self.path(format!("images/{}.json", id.hex()))
    }

    fn content_path(&self, digest: Digest) -> PathBuf {
        self.path(format!("content/{}", digest.hex()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl Image {
    /// The digest of the image in a repository, if it was pulled from there.
    pub(crate) fn digest_in(&self, reference: &Reference) -> Option<Digest> {
        self.digests
            .iter()
            .filter_map(|name| name.parse::<Reference>().ok())
            .find_map(|name| match name.which {
                Which::Digest(digest) if name.name() == reference.name() => Some(digest),
                _ => None,
            })
    }
}

/// Shorter prefixes are more likely a name.
const SHORTEST_ID: usize = 3;

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError {
        action,
        path,
        source,
    }
}
