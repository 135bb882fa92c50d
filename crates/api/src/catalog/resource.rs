//! A resource as clients see it: its names, verbs, subresources; and how it is stored.

use std::borrow::Cow;

use crate::Text;

/// A resource of one group-version, as discovery shows it.
#[derive(Clone, Debug)]
pub struct Resource {
    pub group: Text,
    pub version: Text,
    /// The name in paths: `deployments`.
    pub plural: Text,
    pub singular: Text,
    pub kind: Text,
    pub short_names: Cow<'static, [Text]>,
    pub categories: Cow<'static, [Text]>,
    pub namespaced: bool,
    /// The feature gate that must be on for it to be served.
    pub gate: Option<Text>,
    pub deprecated: Option<Deprecated>,
    pub verbs: Cow<'static, [Text]>,
    pub subresources: Cow<'static, [Subresource]>,
    /// Absent: not stored (reviews, bindings).
    pub storage: Option<Storage>,
    pub selectable: Cow<'static, [Selectable]>,
    pub columns: Cow<'static, [Column]>,
    /// Defaults that apply to this kind only, though its types are shared: path and JSON.
    pub defaults: Cow<'static, [(Text, Text)]>,
    /// `metadata.generation` starts at 1 and counts changes of the spec.
    pub has_generation: bool,
    /// PUT of an absent object creates it.
    pub create_on_update: bool,
    /// PUT without `resourceVersion` is refused.
    pub needs_version: bool,
    /// DELETE returns the deleted object, not a Status.
    pub returns_deleted: bool,
}

impl Resource {
    /// Group, version and plural name.
    pub(super) fn full_name(&self) -> [&str; 3] {
        [&self.group, &self.version, &self.plural]
    }
}

/// Since when a resource is deprecated.
#[derive(Clone, Debug)]
pub struct Deprecated {
    pub since: Text,
    /// The release that no longer serves it; empty: not decided.
    pub removed: Text,
    /// Group-version and kind to use instead; empty: there is none.
    pub replacement: Text,
}

#[derive(Clone, Debug)]
pub struct Subresource {
    pub name: Text,
    /// Group and version of the kind where they are not the resource's own.
    pub group: Text,
    pub version: Text,
    pub kind: Text,
    pub verbs: Cow<'static, [Text]>,
    /// Whether responses can be rendered as a Table.
    pub has_table: bool,
}

/// How a resource is stored.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Group and version of the kind that is written.
    pub group: Text,
    pub version: Text,
    /// Its key prefix below `/registry/`.
    pub prefix: Text,
    /// Stored as JSON even where others are protobuf.
    pub json: bool,
    pub hash: Text,
    /// Whether discovery publishes the hash.
    pub hash_published: bool,
}

/// A field that a field selector may name.
#[derive(Clone, Debug)]
pub struct Selectable {
    pub name: Text,
    pub compared: Compared,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// With the object's field of that name.
    Itself,
    /// With another field of the stored object.
    With(Text),
    /// With nothing: only the empty value matches.
    Never,
}

/// A column of the Table rendering.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: Text,
    pub data_type: Text,
    pub format: Text,
    /// Shown only with `-o wide`.
    pub wide: bool,
    pub described: Described,
}

/// Source of a column's description.
#[derive(Clone, Debug, PartialEq)]
pub enum Described {
    /// The field that the column shows, at this path of the object.
    Field(Text),
    Words(Text),
}

/// A feature gate and its state in v1.36.
#[derive(Clone, Debug)]
pub struct Gate {
    pub name: Text,
    pub stage: Stage,
    pub default: bool,
    /// Its value cannot be changed.
    pub locked: bool,
    /// Components that use it.
    pub used_by: Cow<'static, [Text]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Alpha,
    Beta,
    Ga,
    Deprecated,
}

/// An API group with all its versions, of which not all need be served.
#[derive(Clone, Debug)]
pub struct Group {
    /// Empty: the core group.
    pub name: Text,
    /// The preferred one first.
    pub versions: Cow<'static, [Text]>,
}
