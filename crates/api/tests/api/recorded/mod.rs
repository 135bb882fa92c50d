//! The recorded behaviour of a real server: `tests/corpus`, `tests/facts` and `tests/golden` of the
//! repository.

pub(crate) mod corpus;

use std::path::{Path, PathBuf};

/// A file or folder below `tests/`.
pub(crate) fn path(below: &str) -> PathBuf {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests")).join(below);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// The files of a folder with that ending, by name.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no *{ending} in {}", folder.display());
    found
}
