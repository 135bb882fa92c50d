//! The files of the repository: Rust sources, Markdown pages, and all paths.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::stripped_code;
use crate::finding::ChoreError;

pub(super) struct Tree {
    pub(super) sources: Vec<Source>,
    pub(super) pages: Vec<Page>,
    /// Every file and folder, relative to the root.
    pub(super) paths: BTreeSet<String>,
}

/// A Rust file.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    /// The code without comments and literals; lines are where they were.
    pub(super) code: String,
}

/// A Markdown file.
pub(super) struct Page {
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: &str) -> Source {
        Source {
            path: path.into(),
            text: text.to_owned(),
            code: stripped_code::code_of(text),
        }
    }
}

/// Reads the repository, without build output and hidden folders.
pub(super) fn read(root: &Path) -> Result<Tree, ChoreError> {
    let mut tree = Tree {
        sources: Vec::new(),
        pages: Vec::new(),
        paths: BTreeSet::new(),
    };

    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for (name, is_folder) in entries(&root.join(&folder))? {
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };

            match name.rsplit_once('.') {
                _ if is_folder && (name.starts_with('.') || name == "target") => continue,
                _ if is_folder => folders.push(path.clone()),
                Some((_, "rs")) => tree.sources.push(Source::new(&path, &text(root, &path)?)),
                Some((_, "md")) => tree.pages.push(Page {
                    text: text(root, &path)?,
                    path: path.clone(),
                }),
                _ => {}
            }

            tree.paths.insert(path);
        }
    }

    tree.sources.sort_by(|a, b| a.path.cmp(&b.path));
    tree.pages.sort_by(|a, b| a.path.cmp(&b.path));

    Ok(tree)
}

/// The text of a file of the checkout.
pub(super) fn text(root: &Path, path: &str) -> Result<String, ChoreError> {
    let path = root.join(path);
    fs::read_to_string(&path).map_err(|error| ChoreError::Read { path, error })
}

/// The names in a folder, and which of them are folders.
fn entries(folder: &Path) -> Result<Vec<(String, bool)>, ChoreError> {
    let fail = |error| ChoreError::Read {
        path: folder.to_path_buf(),
        error,
    };

    fs::read_dir(folder)
        .map_err(fail)?
        .map(|entry| {
            let entry = entry.map_err(fail)?;
            let is_folder = entry.file_type().map_err(fail)?.is_dir();
            Ok((entry.file_name().to_string_lossy().into_owned(), is_folder))
        })
        .collect()
}
