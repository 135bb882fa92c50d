//! `cargo xtask tidy`: what the compiler and clippy cannot check.
//!
//! The checkout is read once ([`files`]); of every Rust file there is also its bare code, without
//! comments and literals ([`bare`]). Over that go the checks, each a pure function to findings:
//! [`rooms`] (who may depend on whom), [`modules`] (no circles within a crate), [`lengths`] (places
//! that have grown too long), [`paragraphs`] (long functions without a blank line), [`recursion`]
//! (what bounds it), [`words`] (what may not stay in code) and [`links`] (in pages).

mod bare;
mod files;
mod lengths;
mod links;
mod modules;
mod paragraphs;
mod recursion;
mod rooms;
mod words;

use std::path::Path;

use crate::finding::{ChoreError, Finding};
use crate::metadata;

pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, ChoreError> {
    let tree = files::read(root)?;
    let packages = metadata::workspace(root)?;
    let allowances = files::text(root, lengths::ALLOWANCES)?;
    let bounds = files::text(root, recursion::BOUNDS)?;
    let page = files::text(root, rooms::PAGE)?;

    Ok([
        rooms::check(&packages, &page),
        lengths::check(&tree.sources, &allowances),
        paragraphs::check(&tree.sources),
        recursion::check(&tree.sources, &bounds),
        modules::check(&tree.sources),
        words::check(&tree.sources),
        links::check(&tree),
    ]
    .into_iter()
    .flatten()
    .collect())
}
