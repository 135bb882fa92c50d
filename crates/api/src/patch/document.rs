//! The types of patch documents, for the decoder's checks.
//!
//! Before a patch is applied, its text is read once the way any body is, so that members given
//! twice and values of the wrong type are found and named in upstream's words. These few types are
//! a catalogue page like any other.

use std::borrow::Cow;

use crate::Text;
use crate::catalog::{
    Extra, Field, Item, ItemId, Node, Page, NameIndex, Presence, RawKind, Shape, Span, Type, TypeId,
};
use crate::codec::json::{self, DecodeError};

/// A patch as it was read, and what strict reading has against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<P> {
    pub patch: P,
    /// `duplicate field "spec.replicas"` and the like, each once. Whether they refuse the request,
    /// or are warnings, or nobody asked, is the caller's business.
    pub strict: Vec<String>,
}

/// What strict reading has against a text that should be an object: a merge patch of either sort.
pub(super) fn check_object(text: &[u8]) -> Result<json::Decoded, DecodeError> {
    json::decode(
        text,
        Some(Node {
            page: &PAGE,
            shape: Shape::Map(ANYTHING),
        }),
    )
}

/// What strict reading has against a text that should be a list of operations.
pub(super) fn check_operations(text: &[u8]) -> Result<Vec<String>, DecodeError> {
    let node = Node {
        page: &PAGE,
        shape: Shape::List(OPERATION),
    };
    Ok(json::decode(text, Some(node))?.strict)
}

const ANYTHING: ItemId = ItemId(0);
const OPERATION: ItemId = ItemId(1);

static PAGE: Page = Page {
    types: Cow::Borrowed(&TYPES),
    fields: Cow::Borrowed(&FIELDS),
    always: Cow::Borrowed(&[]),
    wires: Cow::Borrowed(&[]),
    items: Cow::Borrowed(&ITEMS),
    extras: Cow::Borrowed(&EXTRAS),
    unions: Cow::Borrowed(&[]),
    kinds: Cow::Borrowed(&[]),
    resources: Cow::Borrowed(&[]),
    published: Vec::new(),
    kinds_by_name: NameIndex::new(),
    resources_by_name: NameIndex::new(),
};

static TYPES: [Type; 1] = [Type {
    // The name that upstream's messages show.
    name: Text::const_new("handlers.jsonPatchOp"),
    package: Text::const_new(""),
    json_only: true,
    atomic: false,
    open: false,
    fields: Span::new(0, 4),
    always: Span::new(0, 0),
    wires: Span::new(0, 0),
    unions: Span::new(0, 0),
}];

static FIELDS: [Field; 4] = [
    field("from", Shape::String),
    field("op", Shape::String),
    field("path", Shape::String),
    field("value", Shape::Raw(RawKind::Any)),
];

static ITEMS: [Item; 2] = [
    Item {
        shape: Shape::Raw(RawKind::Any),
    },
    Item {
        shape: Shape::Struct(TypeId(0)),
    },
];

static EXTRAS: [Extra; 1] = [Extra {
    list: None,
    map: None,
    patch: crate::catalog::Patch {
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
}];

const fn field(name: &'static str, shape: Shape) -> Field {
    Field {
        name: Text::const_new(name),
        shape,
        presence: Presence(Presence::REQUIRED),
        extra: 0,
    }
}
