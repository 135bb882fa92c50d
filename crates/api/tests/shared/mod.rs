//! Where the recorded facts are: a folder `shared` beside the checkout, or `CORACLE_SHARED`.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::io::{self, Write};
use std::path::PathBuf;

/// The folder at `path` below the recorded facts. Without them the test that asks is left out, by name.
#[expect(clippy::explicit_write, reason = "the test harness hides what `eprintln!` says while a test passes")]
pub(crate) fn folder(path: &str, test: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let root = std::env::var_os("CORACLE_SHARED").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let folder = root.join(path);
    if folder.exists() {
        return Some(folder);
    }
    writeln!(io::stderr(), "left out: {test}: {} is not there", folder.display()).unwrap();
    None
}

/// The files of a folder with that ending, by name.
pub(crate) fn files(folder: &std::path::Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no *{ending} in {}", folder.display());
    found
}
