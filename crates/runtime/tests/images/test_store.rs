//! A temporary image store for tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use coracle_runtime::images::{ImageStore, ImagesConfig};

pub(crate) struct TestStore {
    pub(crate) folder: tempfile::TempDir,
}

impl TestStore {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn config(&self) -> ImagesConfig {
        ImagesConfig::new(self.path("images"), || SystemTime::UNIX_EPOCH)
    }

    pub(crate) fn open(&self) -> Arc<ImageStore> {
        ImageStore::open(self.config()).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// The number of entries in the store's folders: layers, records, content, staging.
    pub(crate) fn counts(&self) -> [usize; 4] {
        ["layers", "images", "content", "staging"]
            .map(|name| count(&self.path("images").join(name)))
    }
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}
