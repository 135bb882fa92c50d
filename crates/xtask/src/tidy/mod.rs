//! `cargo xtask tidy`: what the compiler and clippy cannot check.
//!
//! The repository is read once ([`files`]); every Rust file is also stripped of comments and
//! literals ([`stripped_code`]). Each check is a pure function to findings: [`dependencies`]
//! (allowed dependencies between crates), [`modules`] (no
//! circles within a crate), [`lengths`] (too long files and functions),
//! [`paragraphs`] (long functions without a blank line), [`recursion`] (what bounds it),
//! [`forbidden`] (forbidden code) and [`links`] (in pages).

mod dependencies;
mod files;
mod forbidden;
mod lengths;
mod links;
mod modules;
mod paragraphs;
mod recursion;
mod stripped_code;

use std::path::Path;

use crate::finding::{ChoreError, Finding};
use crate::metadata;

pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, ChoreError> {
    let tree = files::read(root)?;
    let packages = metadata::workspace(root)?;
    let allowances = files::text(root, lengths::ALLOWANCES)?;
    let bounds = files::text(root, recursion::BOUNDS)?;
    let page = files::text(root, dependencies::PAGE)?;

    Ok([
        dependencies::check(&packages, &page),
        lengths::check(&tree.sources, &allowances),
        paragraphs::check(&tree.sources),
        recursion::check(&tree.sources, &bounds),
        modules::check(&tree.sources),
        forbidden::check(&tree.sources),
        links::check(&tree),
    ]
    .into_iter()
    .flatten()
    .collect())
}
