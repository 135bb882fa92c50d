//! Containers in the image store: their writable layers and the image layers they use.

use std::path::PathBuf;

use coracle_files::remove_tree;

use super::{Store, StoreError, failed, files};
use crate::images::digest::Digest;

impl Store {
    /// The folder of a container's writable layer.
    pub(crate) fn container_path(&self, container: &str) -> PathBuf {
        self.path("containers").join(container)
    }

    pub(crate) fn containers(&self) -> Vec<String> {
        self.state().containers.keys().cloned().collect()
    }

    /// The image layers of a container, if it exists.
    pub(crate) fn layers_of(&self, container: &str) -> Option<Vec<Digest>> {
        self.state().containers.get(container).cloned()
    }

    /// Records the image layers of a container, before anything is created for it. False if the
    /// image is gone.
    pub(crate) fn add_container(&self, container: &str, image: Digest) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(image) = state.images.get(&image) else {
            return Ok(false);
        };
        let layers = image.layers.clone();
        let folder = self.container_path(container);
        std::fs::create_dir_all(&folder).map_err(failed("create", &folder))?;
        let record = folder.join(RECORD);
        let bytes = serde_json::to_vec(&layers).expect("a list of strings serializes");

        // Not synced: no container survives a power failure, and one without a record is deleted at
        // the next start.
        files::write_unsynced(&record, &bytes).map_err(failed("write", &record))?;
        state.containers.insert(container.to_owned(), layers);

        Ok(true)
    }

    /// Deletes a container's writable layer, and layers that only it used. The record is deleted
    /// last.
    pub(crate) fn remove_container(&self, container: &str) -> Result<(), StoreError> {
        let folder = self.container_path(container);
        remove_tree(&folder.join("upper")).map_err(failed("delete", &folder))?;
        remove_tree(&folder).map_err(failed("delete", &folder))?;
        if self.state().containers.remove(container).is_some() {
            self.sweep()?;
        }
        Ok(())
    }

    pub(super) fn read_containers(&self) -> Result<(), StoreError> {
        let folder = self.path("containers");
        for name in files::names(&folder).map_err(failed("read", &folder))? {
            let record = folder.join(&name).join(RECORD);
            let layers = std::fs::read(&record)
                .ok()
                .and_then(|bytes| serde_json::from_slice(&bytes).ok());

            // Without a record nothing was created yet, or everything is deleted already.
            match layers {
                Some(layers) => drop(self.state().containers.insert(name, layers)),
                None => self.delete_incomplete(&folder.join(name))?,
            }
        }

        Ok(())
    }
}

const RECORD: &str = "layers.json";
