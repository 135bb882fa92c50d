//! An object to encode: a version that the cache holds, or a tree that was made for this response.

use std::borrow::Cow;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Kind, Struct};
use coracle_api::codec::json;

use super::Objects;
use crate::cache::Entry;

#[derive(Clone, Copy)]
pub enum Shown<'a> {
    Entry(&'a Entry),
    Tree(&'a Value),
}

impl<'a> From<&'a Entry> for Shown<'a> {
    fn from(entry: &'a Entry) -> Shown<'a> {
        Shown::Entry(entry)
    }
}

impl<'a> Shown<'a> {
    /// Appends the whole object.
    pub(super) fn write(self, objects: &Objects<'_>, out: &mut Vec<u8>) {
        match self {
            Shown::Entry(entry) if objects.storage_version.keeps(objects.kind) => {
                out.reserve(entry.bytes().len() + ROOM);
                entry.write(out);
            }
            Shown::Entry(_) => json::write_typed(&self.tree(objects), objects.of.node(), out),
            Shown::Tree(tree) => json::write_typed(tree, self.of(objects).node(), out),
        }
    }

    /// Appends its metadata.
    pub(super) fn write_metadata(self, objects: &Objects<'_>, out: &mut Vec<u8>) {
        match self {
            // Its own members are in alphabetical order, those of a type are not.
            Shown::Entry(entry) if objects.custom.is_some() => {
                let tree = entry.value(objects.storage_version.of);
                let field = objects.of.field("metadata");
                if let Some((metadata, field)) = tree.get("metadata").zip(field) {
                    json::write_typed(metadata, field.node(), out);
                }
            }
            Shown::Entry(entry) => entry.write_metadata(out),
            Shown::Tree(tree) => match (tree.get("metadata"), self.of(objects).field("metadata")) {
                (Some(metadata), Some(field)) => json::write_typed(metadata, field.node(), out),
                _ => out.extend_from_slice(b"{}"),
            },
        }
    }

    /// The object as a tree, in the version that clients see.
    pub(super) fn tree(self, objects: &Objects<'_>) -> Cow<'a, Value> {
        match self {
            Shown::Entry(_) => objects
                .storage_version
                .show(self.kept(objects), objects.kind),
            Shown::Tree(tree) => Cow::Borrowed(tree),
        }
    }

    /// The object as a tree, in the storage version.
    pub(super) fn kept(self, objects: &Objects<'_>) -> Cow<'a, Value> {
        match self {
            Shown::Entry(entry) => Cow::Owned(entry.value(objects.storage_version.of)),
            Shown::Tree(tree) => Cow::Borrowed(tree),
        }
    }

    /// Its type: that of the resource, unless a subresource has a kind of its own.
    pub(super) fn of<'o>(self, objects: &Objects<'o>) -> Struct<'o> {
        match self {
            Shown::Entry(_) => objects.of,
            Shown::Tree(tree) => kind(tree).map_or(objects.of, |kind| BUILTIN.root(kind)),
        }
    }

    /// Its kind, likewise.
    pub(super) fn kind<'o>(self, objects: &Objects<'o>) -> &'o Kind {
        match self {
            Shown::Entry(_) => objects.kind,
            Shown::Tree(tree) => kind(tree).unwrap_or(objects.kind),
        }
    }

    pub(super) fn resource_version(self) -> Cow<'a, str> {
        match self {
            Shown::Entry(entry) => Cow::Owned(entry.revision.to_string()),
            Shown::Tree(tree) => Cow::Borrowed(tree.meta().resource_version()),
        }
    }
}

fn kind(tree: &Value) -> Option<&'static Kind> {
    let map = tree.as_object()?;
    BUILTIN.kind_of(map.str("apiVersion")?, map.str("kind")?)
}

/// What is written of an entry beside its bytes: the resourceVersion, and a line break.
pub(super) const ROOM: usize = 48;
