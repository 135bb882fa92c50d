//! The built-in page: the tables that the build script generates from `catalog/`.

use std::borrow::Cow;

use super::model::*;
use super::resource::*;
use super::{NameIndex, Page};
use crate::Text;

/// Every type and kind of v1.36.
pub static BUILTIN: Page = Page {
    types: Cow::Borrowed(&TYPES),
    fields: Cow::Borrowed(&FIELDS),
    always: Cow::Borrowed(&ALWAYS),
    wires: Cow::Borrowed(&WIRES),
    items: Cow::Borrowed(&ITEMS),
    extras: Cow::Borrowed(&EXTRAS),
    unions: Cow::Borrowed(&UNIONS),
    kinds: Cow::Borrowed(&KINDS),
    resources: Cow::Borrowed(&RESOURCES),
    published: Vec::new(),
    kinds_by_name: NameIndex::new(),
    resources_by_name: NameIndex::new(),
};

/// The groups in the order discovery lists them, with all versions that can be served.
pub fn groups() -> &'static [Group] {
    &GROUPS
}

/// The feature gates, by name.
pub fn gates() -> &'static [Gate] {
    &GATES
}

/// One feature gate.
pub fn gate(name: &str) -> Option<&'static Gate> {
    GATES
        .binary_search_by(|gate| gate.name.as_str().cmp(name))
        .ok()
        .map(|index| &GATES[index])
}

const fn t(text: &'static str) -> Text {
    Text::const_new(text)
}

#[expect(clippy::too_many_arguments, reason = "a row of a generated table")]
const fn ty(
    name: &'static str,
    package: &'static str,
    json_only: bool,
    atomic: bool,
    first_field: u32,
    fields: u32,
    always: Span,
    wires: Span,
    first_union: u32,
    unions: u32,
) -> Type {
    Type {
        name: t(name),
        package: t(package),
        json_only,
        atomic,
        open: false,
        fields: Span::new(first_field, fields),
        always,
        wires,
        unions: Span::new(first_union, unions),
    }
}

const fn f(name: &'static str, shape: Shape, presence: u8, extra: u16) -> Field {
    Field {
        name: t(name),
        shape,
        presence: Presence(presence),
        extra,
    }
}

const NO_EXTRA: Extra = Extra {
    list: None,
    map: None,
    patch: Patch {
        merge: false,
        replace: false,
        retain_keys: false,
        merge_key: None,
    },
    default: None,
    published_default: None,
    enumeration: Cow::Borrowed(&[]),
    known: Cow::Borrowed(&[]),
    gates: Cow::Borrowed(&[]),
    milli: false,
};

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
