//! The catalogue: every kind, type and field of the API, as data.
//!
//! The text in `catalog/` (format: `catalog/README.md`) is compiled into static tables
//! ([`BUILTIN`]). A custom resource is a [`Page`] of the same form, built at run time. Code that
//! walks an object uses a [`Node`]: a page and the shape of the current value. Looking up a kind, a
//! resource or a field does not allocate, except for the first time.

mod all;
mod builder;
mod builtin;
mod describe;
mod model;
mod name_index;
mod node;
mod resource;
mod served;

pub use all::Catalog;
pub use builder::PageBuilder;
pub use builtin::{BUILTIN, gate, gates, groups};
pub use describe::scalar_description;
pub(crate) use model::WireTo;
pub use model::{
    Extra, Field, Item, ItemId, Kind, ListType, MapType, Patch, Presence, RawKind, Shape, Span,
    Type, TypeId, Union, Wire,
};
pub(crate) use name_index::NameIndex;
pub use node::{FieldRef, Node, Struct};
pub use resource::{
    Column, Compared, Deprecated, Described, Gate, Group, Resource, Selectable, Stage, Storage,
    Subresource,
};
pub use served::{ServedApis, is_stable};

use std::borrow::Cow;

use crate::{Text, Value};

/// A set of kinds with the types they are made of.
#[derive(Clone, Debug)]
pub struct Page {
    pub(crate) types: Cow<'static, [Type]>,
    pub(crate) fields: Cow<'static, [Field]>,
    pub(crate) always: Cow<'static, [u16]>,
    pub(crate) wires: Cow<'static, [Wire]>,
    pub(crate) items: Cow<'static, [Item]>,
    pub(crate) extras: Cow<'static, [Extra]>,
    pub(crate) unions: Cow<'static, [Union]>,
    /// In order of group, version and name.
    pub(crate) kinds: Cow<'static, [Kind]>,
    /// In order of group, version and plural name.
    pub(crate) resources: Cow<'static, [Resource]>,
    /// The schemas of open types, as their authors wrote them.
    pub(crate) published: Vec<(TypeId, Value)>,
    pub(crate) kinds_by_name: NameIndex,
    pub(crate) resources_by_name: NameIndex,
}

impl Page {
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The kind of that name.
    pub fn kind(&self, group: &str, version: &str, name: &str) -> Option<&Kind> {
        self.kind_index(group, version, name)
            .map(|index| &self.kinds[index])
    }

    /// Its index in [`Page::kinds`].
    pub(crate) fn kind_index(&self, group: &str, version: &str, name: &str) -> Option<usize> {
        self.kinds_by_name
            .find(&self.kinds, [group, version, name], Kind::full_name)
    }

    /// The kind of an object with this apiVersion and kind.
    pub fn kind_of(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let (group, version) = split_api_version(api_version);
        self.kind(group, version, kind)
    }

    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        let name = [group, version, plural];
        let index = self
            .resources_by_name
            .find(&self.resources, name, Resource::full_name);
        index.map(|index| &self.resources[index])
    }

    /// The kinds whose objects are of this type: none, one, or, for a type that several groups
    /// share, several.
    pub fn kinds_of(&self, id: TypeId) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().filter(move |kind| kind.type_id == id)
    }

    /// The struct at the top of objects of this kind.
    pub fn root(&self, kind: &Kind) -> Struct<'_> {
        self.struct_of(kind.type_id)
    }

    /// A type by its catalogue name, `core.v1.PodSpec`. A linear search: for tests and start-up.
    pub fn type_named(&self, name: &str) -> Option<Struct<'_>> {
        let index = self
            .types
            .iter()
            .position(|declared| declared.name == name)?;
        Some(self.struct_of(TypeId(u16::try_from(index).ok()?)))
    }

    /// Every struct of the page.
    pub fn structs(&self) -> impl Iterator<Item = Struct<'_>> {
        (0..self.types.len()).map(|index| {
            self.struct_of(TypeId(
                u16::try_from(index).expect("a page has fewer than 65,536 types"),
            ))
        })
    }

    /// The schema of an open type, as its author wrote it.
    pub fn published(&self, id: TypeId) -> Option<&Value> {
        self.published
            .iter()
            .find(|(of, _)| *of == id)
            .map(|(_, schema)| schema)
    }

    pub fn struct_of(&self, id: TypeId) -> Struct<'_> {
        Struct {
            page: self,
            id,
            declared: &self.types[usize::from(id.0)],
        }
    }
}

/// Group and version of an `apiVersion`.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The `apiVersion` of a group and version.
pub fn api_version(group: &str, version: &str) -> Text {
    if group.is_empty() {
        return Text::new(version);
    }
    let mut text = Text::new(group);
    text.push('/');
    text.push_str(version);
    text
}

#[cfg(test)]
mod tests;
