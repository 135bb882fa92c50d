//! Layers: staged, committed by a rename, held while in use, garbage-collected when unused.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_files::remove_tree;
use rustix::fs::{Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::{Layer, State, Store, StoreError, failed, files};
use crate::images::digest::Digest;
use crate::images::unpack::Unpacked;
use crate::node::blocking;

/// A folder in which a layer is unpacked. It is deleted on drop, unless it is committed.
pub(crate) struct Staged {
    path: PathBuf,
    /// Closed when the folder is gone.
    gone: Option<mpsc::Sender<()>>,
}

impl Staged {
    /// Drops `gone` after the folder is deleted.
    pub(crate) fn with_deletion_signal(self, gone: mpsc::Sender<()>) -> Staged {
        let mut staged = self;
        staged.gone = Some(gone);
        staged
    }

    /// The folder of the layer's content.
    pub(crate) fn content(&self) -> PathBuf {
        self.path.join("diff")
    }

    /// Deletes the folder, and waits until it is gone.
    pub(crate) async fn discard(self) {
        blocking(move || self.delete()).await;
    }

    /// Deletes the folder now, on a thread that may wait.
    fn delete(mut self) {
        delete(&std::mem::take(&mut self.path));
    }
}

impl Drop for Staged {
    /// May be dropped by a cancelled task: the folder is deleted on a blocking thread.
    fn drop(&mut self) {
        let (path, gone) = (std::mem::take(&mut self.path), self.gone.take());
        if path.as_os_str().is_empty() || !path.exists() {
            return;
        }

        let work = move || {
            delete(&path);
            drop(gone);
        };

        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(work)),
            Err(_) => work(),
        }
    }
}

fn delete(staged: &Path) {
    if let Err(error) = remove_tree(staged) {
        tracing::warn!(path = ?staged, %error, "cannot delete staged layer");
    }
}

/// Protects layers from garbage collection.
pub(crate) struct LayerHold {
    store: Arc<Store>,
    layers: Vec<Digest>,
}

impl Drop for LayerHold {
    fn drop(&mut self) {
        let mut state = self.store.state();
        for layer in &self.layers {
            let count = state.held.entry(*layer).or_default();
            *count -= 1;
            if *count == 0 {
                state.held.remove(layer);
            }
        }
    }
}

impl Store {
    pub(crate) fn stage(&self) -> Result<Staged, StoreError> {
        let staged = Staged {
            path: self.staging_path(),
            gone: None,
        };
        let content = staged.content();
        std::fs::create_dir_all(&content).map_err(failed("create", &content))?;
        Ok(staged)
    }

    /// A new name below a folder that is emptied at start.
    pub(crate) fn staging_path(&self) -> PathBuf {
        self.path(format!("staging/{}", self.number()))
    }

    pub(crate) fn has_layer(&self, name: Digest) -> bool {
        self.state().layers.contains_key(&name)
    }

    /// Holds layers, existing or not.
    pub(crate) fn hold(self: &Arc<Self>, layers: &[Digest]) -> LayerHold {
        let mut state = self.state();
        for layer in layers {
            *state.held.entry(*layer).or_default() += 1;
        }
        LayerHold {
            store: Arc::clone(self),
            layers: layers.to_vec(),
        }
    }

    /// Syncs the filesystem, once for all layers of an image.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        let sync = || Ok(rustix::fs::syncfs(File::open(&self.root)?)?);
        sync().map_err(failed("sync", &self.root))
    }

    /// Commits a layer under its chain ID. The layers below must exist. Where another pull was
    /// quicker, the layer exists already, with the same content.
    pub(crate) fn commit(
        &self,
        staged: &Staged,
        diff_id: Digest,
        unpacked: &Unpacked,
        stack: &[Digest],
    ) -> Result<(), StoreError> {
        let (name, below) = stack
            .split_last()
            .expect("a layer is in the stack that it is the top of");
        let _committing = self.committing.lock();

        if self.has_layer(*name) {
            return Ok(());
        }

        self.copy_implied_metadata(staged, &unpacked.implied, below)?;
        let layer = Layer {
            diff_id,
            bytes: unpacked.bytes,
            inodes: unpacked.inodes,
        };

        let record = staged.path.join("layer.json");
        let bytes = serde_json::to_vec(&layer).expect("a record of strings and numbers serializes");
        files::write_synced(&record, &bytes).map_err(failed("write", &record))?;
        let path = self.layer_path(*name);
        std::fs::rename(&staged.path, &path).map_err(failed("rename a layer to", &path))?;
        files::sync_folder(&self.path("layers")).map_err(failed("sync", &self.path("layers")))?;
        self.state().layers.insert(*name, layer);

        Ok(())
    }

    /// Where a layer's content is.
    pub(crate) fn layer_content(&self, name: Digest) -> PathBuf {
        self.layer_path(name).join("diff")
    }

    /// Disk usage of all layers: bytes and inodes.
    pub(crate) fn usage(&self) -> (u64, u64) {
        self.state()
            .layers
            .values()
            .fold((0, 0), |(bytes, inodes), layer| {
                (bytes + layer.bytes, inodes + layer.inodes)
            })
    }

    /// Deletes unused layers and content. Layers of containers stay, even if their image is gone.
    pub(crate) fn sweep(&self) -> Result<(), StoreError> {
        let aside = {
            let mut state = self.state();
            self.sweep_content(&state)?;
            self.unlink_unused_layers(&mut state)?
        };
        // Deleting is slow, so it happens outside the lock.
        aside.into_iter().for_each(Staged::delete);
        Ok(())
    }

    /// Moves unused layers to staging: a layer in `layers` is always complete.
    fn unlink_unused_layers(&self, state: &mut State) -> Result<Vec<Staged>, StoreError> {
        let mut needed: BTreeSet<Digest> = state
            .images
            .values()
            .flat_map(|image| image.layers.clone())
            .collect();
        needed.extend(state.containers.values().flatten());

        needed.extend(state.held.keys());
        let unused: Vec<Digest> = state
            .layers
            .keys()
            .filter(|layer| !needed.contains(layer))
            .copied()
            .collect();

        let mut aside = Vec::new();
        for layer in unused {
            let path = self.layer_path(layer);
            let staged = Staged {
                path: self.staging_path(),
                gone: None,
            };
            std::fs::rename(&path, &staged.path).map_err(failed("rename", &path))?;
            state.layers.remove(&layer);
            aside.push(staged);
        }

        Ok(aside)
    }

    /// Content may be waiting for its record while layers are held.
    fn sweep_content(&self, state: &State) -> Result<(), StoreError> {
        if !state.held.is_empty() {
            return Ok(());
        }

        let kept = state
            .images
            .values()
            .flat_map(|image| image.manifests.iter().chain([&image.id]));
        let kept: BTreeSet<String> = kept.map(Digest::hex).collect();

        let folder = self.path("content");
        let names = files::names(&folder).map_err(failed("read", &folder))?;

        names
            .iter()
            .filter(|name| !kept.contains(*name))
            .try_for_each(|name| {
                let path = folder.join(name);
                files::delete(&path).map_err(failed("delete", &path))
            })
    }

    pub(super) fn read_layers(&self) -> Result<(), StoreError> {
        let folder = self.path("layers");
        for name in files::names(&folder).map_err(failed("read", &folder))? {
            let record = folder.join(&name).join("layer.json");
            let layer = std::fs::read(&record)
                .ok()
                .and_then(|bytes| serde_json::from_slice(&bytes).ok());
            match (Digest::from_hex(&name), layer) {
                (Ok(name), Some(layer)) => drop(self.state().layers.insert(name, layer)),
                _ => self.delete_incomplete(&folder.join(name))?,
            }
        }

        Ok(())
    }

    fn layer_path(&self, name: Digest) -> PathBuf {
        self.path(format!("layers/{}", name.hex()))
    }

    /// Copies the metadata of implied folders from the layers below.
    fn copy_implied_metadata(
        &self,
        staged: &Staged,
        implied: &BTreeSet<PathBuf>,
        below: &[Digest],
    ) -> Result<(), StoreError> {
        let content = staged.content();
        let open =
            |path: &Path| -> Result<OwnedFd, io::Error> { open(path).map_err(io::Error::from) };
        let own = open(&content).map_err(failed("open", &content))?;

        let lower: Vec<OwnedFd> = below
            .iter()
            .rev()
            .map(|layer| self.layer_content(*layer))
            .map(|path| open(&path).map_err(failed("open", &path)))
            .collect::<Result<_, _>>()?;

        // The deepest first: changes inside a folder change its times.
        for path in implied.iter().rev() {
            let copy_metadata = || match lower
                .iter()
                .map(|layer| beneath(layer, path))
                .find(|found| !absent(found))
            {
                Some(Ok(found)) => match beneath(&own, path) {
                    // Replaced by a later entry of the same archive.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
                    own => copy(&found, &own?),
                },
                // The layers below have no such folder.
                _ => Ok(()),
            };
            copy_metadata().map_err(|errno| {
                failed("set the metadata of", &content.join(path))(errno.into())
            })?;
        }

        Ok(())
    }
}

fn absent(found: &Result<OwnedFd, Errno>) -> bool {
    matches!(found, Err(Errno::NOENT))
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Opens what is at a path of a layer, without following any link.
fn beneath(layer: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(layer, path, flags, Mode::empty(), resolve)
}

/// Copies owner, mode, times and ACLs.
fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let found = rustix::fs::fstat(from)?;
    rustix::fs::fchown(
        to,
        Some(Uid::from_raw(found.st_uid)),
        Some(Gid::from_raw(found.st_gid)),
    )?;

    rustix::fs::fchmod(to, Mode::from_raw_mode(found.st_mode))?;

    for name in [c"system.posix_acl_access", c"system.posix_acl_default"] {
        copy_attribute(from, to, name)?;
    }

    let nanoseconds = i64::try_from(found.st_mtime_nsec).unwrap_or(0);
    let time = Timespec {
        tv_sec: found.st_mtime,
        tv_nsec: nanoseconds,
    };

    rustix::fs::futimens(
        to,
        &Timestamps {
            last_access: time,
            last_modification: time,
        },
    )
}

fn copy_attribute(from: &OwnedFd, to: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let mut value = [0; 4096];
    match rustix::fs::fgetxattr(from, name, &mut value[..]) {
        Ok(length) => {
            rustix::fs::fsetxattr(to, name, &value[..length], rustix::fs::XattrFlags::empty())
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno),
    }
}
