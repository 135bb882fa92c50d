//! The records of images and layers.

use serde::{Deserialize, Serialize};

use crate::images::digest::Digest;
use crate::images::reference::{Reference, Which};

/// An image that is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The digest of the configuration.
    pub id: Digest,
    /// Names with a tag, whole.
    pub tags: Vec<String>,
    /// Names with the digest of the manifest or index that they were pulled by, whole.
    pub digests: Vec<String>,
    /// The digests of manifest and index, kept beside the configuration.
    pub manifests: Vec<Digest>,
    /// The names of the stacks, from the lowest layer on.
    pub layers: Vec<Digest>,
    /// What was transferred or read for it.
    pub size: u64,
    /// Nothing but a user's own wish removes it.
    pub pinned: bool,
    /// Counts up with every change: of two records that claim a name, the newer has it.
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

/// A layer that is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layer {
    /// The digest of its plain archive.
    pub(crate) diff_id: Digest,
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}
