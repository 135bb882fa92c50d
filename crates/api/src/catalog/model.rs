//! The data model of a catalogue page.
//!
//! A page is a few flat tables that refer to each other by index: the built-in page needs no
//! construction at start, and a page built at run time (for a CRD) has the same form.

use std::borrow::Cow;

use crate::Text;

/// A run of rows in one of a page's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    pub(crate) const fn new(start: u32, len: u32) -> Span {
        Span { start, len }
    }

    pub(crate) fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..(self.start + self.len) as usize]
    }
}

/// A type of a page: see [`super::Page::struct_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(pub(crate) u16);

/// The type of a list's elements or a map's values: a row of the page's `items`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemId(pub(crate) u16);

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    String,
    /// Base64 in JSON and YAML.
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    /// Any JSON, kept as its text.
    Raw(RawKind),
    Quantity,
    /// Seconds.
    Time,
    /// Microseconds.
    MicroTime,
    /// `1h2m3s`.
    Duration,
    IntOrString,
    /// A list of strings that protobuf wraps in a message of its own.
    Strings,
    /// `items` of a CRD schema: a schema or several. The type is `JSONSchemaProps` of the same
    /// version, here and below.
    SchemaOrArray(TypeId),
    SchemaOrBool(TypeId),
    SchemaOrStrings(TypeId),
    Struct(TypeId),
    List(ItemId),
    /// Keys are strings.
    Map(ItemId),
}

/// Upstream's name for a raw value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawKind {
    /// A value without a type of its own: cells of a Table.
    Any,
    RawExtension,
    FieldsV1,
    /// `JSON` of the apiextensions group.
    Json,
}

/// A struct: a named set of fields.
#[derive(Clone, Debug)]
pub struct Type {
    /// `core.v1.PodSpec`; empty for the nested types of a CRD.
    pub name: Text,
    /// Package of its protobuf message (`k8s.io.api.core.v1`), whose name is the last part of the
    /// type's name; its OpenAPI name is derived from it too. Empty: it has neither.
    pub package: Text,
    /// It has no protobuf form.
    pub json_only: bool,
    /// Server-side apply owns the struct as a whole.
    pub atomic: bool,
    /// Undeclared members are kept: the root of a custom resource.
    pub open: bool,
    pub(crate) fields: Span,
    /// Indices of the fields that are written even when they are not set, in the page's `always`.
    pub(crate) always: Span,
    pub(crate) wires: Span,
    pub(crate) unions: Span,
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its JSON name.
    pub name: Text,
    pub shape: Shape,
    pub presence: Presence,
    /// Row of the page's `extras`; 0 is the empty one.
    pub(crate) extra: u16,
}

/// When a field is present, and when it is written.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Presence(pub(crate) u8);

impl Presence {
    pub(crate) const REQUIRED: u8 = 1;
    pub(crate) const POINTER: u8 = 2;
    pub(crate) const OMIT_EMPTY: u8 = 4;
    pub(crate) const OMIT_ZERO: u8 = 8;

    /// The published schema requires it.
    pub fn required(self) -> bool {
        self.0 & Presence::REQUIRED != 0
    }

    /// Whether absent and zero differ.
    pub fn pointer(self) -> bool {
        self.0 & Presence::POINTER != 0
    }

    /// JSON omits it when it is empty.
    pub fn omit_empty(self) -> bool {
        self.0 & Presence::OMIT_EMPTY != 0
    }

    /// JSON omits it when it is zero, though it is a struct.
    pub fn omit_zero(self) -> bool {
        self.0 & Presence::OMIT_ZERO != 0
    }
}

impl std::fmt::Debug for Presence {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = [
            (self.required(), "required"),
            (self.pointer(), "pointer"),
            (self.omit_empty(), "omit-empty"),
            (self.omit_zero(), "omit-zero"),
        ];
        out.debug_set()
            .entries(flags.iter().filter(|(set, _)| *set).map(|(_, name)| name))
            .finish()
    }
}

/// Attributes that most fields do not have.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// The list type in server-side apply and the published schema. Absent means atomic and
    /// unpublished.
    pub list: Option<ListType>,
    pub map: Option<MapType>,
    pub patch: Patch,
    /// The value that defaulting sets, as JSON.
    pub default: Option<Text>,
    /// The default in the published schema, where it is not the zero value of a field that is
    /// always written.
    pub published_default: Option<Text>,
    /// The closed list of allowed values.
    pub enumeration: Cow<'static, [Text]>,
    /// Values that upstream documents; others are allowed.
    pub known: Cow<'static, [Text]>,
    /// Feature gates that must all be enabled for the field to be kept.
    pub gates: Cow<'static, [Text]>,
    /// The quantities in this map are rounded up to thousandths.
    pub milli: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ListType {
    Atomic,
    Set,
    /// Elements are identified by the values of these fields.
    Map(Cow<'static, [Text]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    Atomic,
    Granular,
}

/// How strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    pub merge: bool,
    pub replace: bool,
    pub retain_keys: bool,
    /// The key by which elements of a list of structs are merged.
    pub merge_key: Option<Text>,
}

/// The element of a list or map.
#[derive(Clone, Debug)]
pub struct Item {
    pub shape: Shape,
}

/// The protobuf encoding of a field. The rows of a type are sorted by tag.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    pub(crate) tag: u16,
    pub(crate) to: WireTo,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum WireTo {
    /// Index into the fields of the type.
    Field(u16),
    /// A message that JSON does not have: its wires lead to fields of the same type.
    Inline(Span),
}

/// A union: at most one of several fields is set.
#[derive(Clone, Debug)]
pub struct Union {
    /// The field that names the member that is set.
    pub discriminator: Option<Text>,
    /// Field and the discriminator's value for it.
    pub members: Cow<'static, [(Text, Text)]>,
}

/// A kind: the type of a whole object.
#[derive(Clone, Debug)]
pub struct Kind {
    pub group: Text,
    pub version: Text,
    pub name: Text,
    pub(crate) type_id: TypeId,
}

impl Kind {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> Text {
        super::api_version(&self.group, &self.version)
    }

    /// Group, version and name.
    pub(super) fn full_name(&self) -> [&str; 3] {
        [&self.group, &self.version, &self.name]
    }
}
