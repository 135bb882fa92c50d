//! The types of patch documents, for the decoder.
//!
//! Before a patch is applied, its text is decoded like any body, so that duplicate members and type
//! errors are reported in upstream's words. These few types are a catalogue page like any other.

use std::borrow::Cow;

use crate::Text;
use crate::catalog::{
    Extra, Field, Item, ItemId, NameIndex, Node, Page, Presence, RawKind, Shape, Span, Type, TypeId,
};
use crate::codec::json::{self, DecodeError};

/// A decoded patch, and the errors of strict decoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<P> {
    pub patch: P,
    /// `duplicate field "spec.replicas"` and the like, each once. Whether they fail the request,
    /// become warnings or are ignored is up to the caller.
    pub strict: Vec<String>,
}

/// Strict decoding of a text that must be an object: a merge patch of either type.
pub(super) fn check_object(text: &[u8]) -> Result<json::Decoded, DecodeError> {
    json::decode(
        text,
        Some(Node {
            page: &PAGE,
            shape: Shape::Map(ANYTHING),
        }),
    )
}

/// Strict decoding of a text that must be a list of operations.
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
    // The name in upstream's messages.
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
