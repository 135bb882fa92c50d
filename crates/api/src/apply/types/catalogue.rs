//! Types of the catalogue as server-side apply sees them.

use super::{Atom, Fields, List, Members, Relationship, Scalar, Type};
use crate::Value;
use crate::catalog::{Extra, FieldRef, ListType, MapType, Node, RawKind, Shape, Struct};
use crate::codec::{canonical, json};

/// A type of the catalogue: the shape of the value, and the attributes of its field.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueType<'s> {
    pub(super) node: Node<'s>,
    pub(super) extra: Option<&'s Extra>,
}

impl<'s> Type<'s> {
    pub(super) fn of_field(field: FieldRef<'s>) -> Type<'s> {
        Type::Catalogue(CatalogueType {
            node: field.node(),
            extra: Some(field.extra()),
        })
    }
}

impl<'s> CatalogueType<'s> {
    /// The empty object of this type as upstream's structs encode it: with the fields that are
    /// always written.
    pub(crate) fn empty(self) -> Value {
        let mut empty = Value::object();
        canonical::canonicalize(&mut empty, self.node);
        empty
    }

    pub(super) fn atom(self) -> Atom<'s> {
        match self.node.shape {
            Shape::String | Shape::Bytes | Shape::Duration => Atom::scalar(Scalar::String),
            Shape::Bool => Atom::scalar(Scalar::Bool),
            Shape::Int32 | Shape::Int64 | Shape::Double => Atom::scalar(Scalar::Number),
            Shape::Quantity | Shape::Time | Shape::MicroTime | Shape::IntOrString => {
                Atom::scalar(Scalar::Any)
            }
            Shape::Raw(RawKind::RawExtension) => Type::Whole.atom(),
            // `items` of a schema and the like: the published schema does not describe them.
            Shape::Raw(_)
            | Shape::SchemaOrArray(_)
            | Shape::SchemaOrBool(_)
            | Shape::SchemaOrStrings(_) => Type::Deduced.atom(),
            Shape::Struct(id) => Atom::map(self.fields(self.node.page.struct_of(id))),
            Shape::List(_) | Shape::Strings => Atom::list(List {
                item: self.item(),
                relationship: self.relationship(),
            }),
            Shape::Map(_) => Atom::map(Fields {
                whole: self.map_type() == Some(MapType::Atomic),
                declared: Members::None,
                other: Some(self.item()),
            }),
        }
    }

    /// Attributes of the field take precedence over those of the type.
    fn fields(self, of: Struct<'s>) -> Fields<'s> {
        let whole = match self.map_type() {
            Some(map) => map == MapType::Atomic,
            None => of.declared.atomic,
        };

        if of.fields().is_empty() {
            return Fields::deduced(whole);
        }

        Fields {
            whole,
            declared: Members::Struct(of),
            other: None,
        }
    }

    fn relationship(self) -> Relationship<'s> {
        match self.extra.and_then(|extra| extra.list.as_ref()) {
            None | Some(ListType::Atomic) => Relationship::Atomic,
            Some(ListType::Set) => Relationship::Set,
            Some(ListType::Map(keys)) => Relationship::Keys(keys),
        }
    }

    fn map_type(self) -> Option<MapType> {
        self.extra.and_then(|extra| extra.map)
    }

    fn item(self) -> Type<'s> {
        Type::catalogue(self.node.item().expect("lists and maps have items"))
    }
}

/// The default of a field in the published schema: its own, or the zero value of what is always
/// written.
pub(super) fn published_default(field: FieldRef<'_>) -> Option<Value> {
    if let Some(text) = &field.extra().published_default {
        return json::parse(text.as_bytes()).ok();
    }
    let presence = field.field.presence;
    if presence.omit_empty() || presence.pointer() {
        return None;
    }
    canonical::when_unset(field.field).filter(|zero| !zero.is_null())
}
