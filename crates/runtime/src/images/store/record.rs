//! The records of images and layers.

use serde::{Deserialize, Serialize};

use crate::images::digest::Digest;
use crate::images::reference::{Reference, Which};

/// The record of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The digest of the configuration.
    pub id: Digest,
    /// Normalized names with a tag.
    pub tags: Vec<String>,
    /// Normalized names with the digest of the pulled manifest or index.
    pub digests: Vec<String>,
    /// The digests of the stored manifest and index.
    pub manifests: Vec<Digest>,
    /// The chain IDs, from the lowest layer on.
    pub layers: Vec<Digest>,
    /// The size of the layers and the configuration as transferred.
    pub size: u64,
    /// Never garbage-collected.
    pub pinned: bool,
    /// Increases with every change: of two records with the same tag, the newer one has it.
    pub change: u64,
}

impl Image {
    pub(super) fn has_name(&self, reference: &Reference) -> bool {
        let names = match reference.which {
            Which::Tag(_) => &self.tags,
            Which::Digest(_) => &self.digests,
        };
        names.contains(&reference.to_string())
    }

    pub(super) fn add_name(&mut self, reference: &Reference) {
        let names = match reference.which {
            Which::Tag(_) => &mut self.tags,
            Which::Digest(_) => &mut self.digests,
        };
        let name = reference.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// The record of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layer {
    /// The digest of its plain archive.
    pub(crate) diff_id: Digest,
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}
