//! Cursors over the types of a page, used to walk an object.

use super::{Extra, Field, Page, RawKind, Shape, Type, TypeId, Union, WireTo};
use crate::catalog::model::Span;
use crate::value::SearchKey;

/// The shape of one value, with the page it points into.
#[derive(Clone, Copy, Debug)]
pub struct Node<'p> {
    pub page: &'p Page,
    pub shape: Shape,
}

impl<'p> Node<'p> {
    pub fn as_struct(self) -> Option<Struct<'p>> {
        match self.shape {
            Shape::Struct(id) => Some(self.page.struct_of(id)),
            _ => None,
        }
    }

    /// The type of this list's elements or this map's values.
    pub fn item(self) -> Option<Node<'p>> {
        match self.shape {
            Shape::List(item) | Shape::Map(item) => Some(Node {
                page: self.page,
                shape: self.page.items[usize::from(item.0)].shape,
            }),
            Shape::Strings => Some(Node {
                page: self.page,
                shape: Shape::String,
            }),
            _ => None,
        }
    }

    /// The Go name of the type, as upstream's decoder prints it.
    pub fn go_type(self) -> String {
        match self.shape {
            Shape::String => "string".to_string(),
            Shape::Bytes => "[]uint8".to_string(),
            Shape::Bool => "bool".to_string(),
            Shape::Int32 => "int32".to_string(),
            Shape::Int64 => "int64".to_string(),
            Shape::Double => "float64".to_string(),
            Shape::Raw(RawKind::Any) => "interface {}".to_string(),
            Shape::Raw(RawKind::RawExtension) => "runtime.RawExtension".to_string(),
            Shape::Raw(RawKind::FieldsV1) => "v1.FieldsV1".to_string(),
            Shape::Raw(RawKind::Json) => "v1.JSON".to_string(),
            Shape::Quantity => "resource.Quantity".to_string(),
            Shape::Time => "v1.Time".to_string(),
            Shape::MicroTime => "v1.MicroTime".to_string(),
            Shape::Duration => "v1.Duration".to_string(),
            Shape::IntOrString => "intstr.IntOrString".to_string(),
            Shape::Strings => "[]string".to_string(),
            Shape::SchemaOrArray(_) => "v1.JSONSchemaPropsOrArray".to_string(),
            Shape::SchemaOrBool(_) => "v1.JSONSchemaPropsOrBool".to_string(),
            Shape::SchemaOrStrings(_) => "v1.JSONSchemaPropsOrStringArray".to_string(),
            Shape::Struct(id) => self.page.struct_of(id).go_type(),
            Shape::List(_) => format!("[]{}", self.item().map(Node::go_type).unwrap_or_default()),
            Shape::Map(_) => format!(
                "map[string]{}",
                self.item().map(Node::go_type).unwrap_or_default()
            ),
        }
    }
}

/// A struct of a page.
#[derive(Clone, Copy, Debug)]
pub struct Struct<'p> {
    pub page: &'p Page,
    pub id: TypeId,
    pub declared: &'p Type,
}

impl<'p> Struct<'p> {
    pub fn node(self) -> Node<'p> {
        Node {
            page: self.page,
            shape: Shape::Struct(self.id),
        }
    }

    /// Whether it keeps members that it does not declare, as custom resources do.
    pub fn is_open(self) -> bool {
        self.declared.open
    }

    /// Its fields, in order of their JSON names.
    pub fn fields(self) -> &'p [Field] {
        self.declared.fields.of(&self.page.fields)
    }

    pub fn field(self, name: &str) -> Option<FieldRef<'p>> {
        self.position(name).map(|index| self.at(index))
    }

    pub fn unions(self) -> &'p [Union] {
        self.declared.unions.of(&self.page.unions)
    }

    /// Every field with its attributes.
    pub fn iter(self) -> impl Iterator<Item = FieldRef<'p>> {
        self.fields().iter().map(move |field| FieldRef {
            page: self.page,
            field,
        })
    }

    /// Index of a field in [`Struct::fields`].
    pub(crate) fn position(self, name: &str) -> Option<usize> {
        let key = SearchKey::new(name);
        self.fields()
            .binary_search_by(|field| key.compare(&field.name))
            .ok()
    }

    /// As [`Struct::position`], trying `expected` first: readers mostly find fields in order.
    pub(crate) fn position_near(self, name: &str, expected: usize) -> Option<usize> {
        let fields = self.fields();
        if fields.get(expected).is_some_and(|field| field.name == name) {
            return Some(expected);
        }
        self.position(name)
    }

    /// The index of a field at or after `from`, for readers whose names are sorted: a short scan
    /// instead of a search.
    pub(crate) fn position_from(self, name: &str, from: usize) -> Option<usize> {
        let ahead = self
            .fields()
            .get(from..)?
            .iter()
            .position(|field| field.name.as_str() >= name)?;
        (self.fields()[from + ahead].name == name).then_some(from + ahead)
    }

    pub(crate) fn at(self, index: usize) -> FieldRef<'p> {
        FieldRef {
            page: self.page,
            field: &self.fields()[index],
        }
    }

    /// Indices of the fields that JSON has even when they are not set.
    pub(crate) fn always(self) -> &'p [u16] {
        self.declared.always.of(&self.page.always)
    }

    pub(crate) fn wires(self) -> Span {
        self.declared.wires
    }

    /// Protobuf field number of a field: a path through inlined messages. Empty: it has none.
    pub fn tag(self, name: &str) -> Vec<u16> {
        let Some(index) = self.position(name) else {
            return Vec::new();
        };
        let mut path = Vec::new();
        self.find_tag(self.wires(), index, &mut path);
        path
    }

    fn find_tag(self, wires: Span, index: usize, path: &mut Vec<u16>) -> bool {
        for wire in wires.of(&self.page.wires) {
            path.push(wire.tag);
            let found = match wire.to {
                WireTo::Field(field) => usize::from(field) == index,
                WireTo::Inline(below) => self.find_tag(below, index, path),
            };

            if found {
                return true;
            }

            path.pop();
        }

        false
    }

    /// `PodSpec`.
    pub fn short_name(self) -> &'p str {
        self.declared.name.rsplit('.').next().unwrap_or_default()
    }

    /// `v1.PodSpec`: package and name as in upstream's messages.
    pub fn go_type(self) -> String {
        let mut parts = self.declared.name.rsplit('.');
        let name = parts.next().unwrap_or_default();
        match parts.next() {
            Some(package) => format!("{package}.{name}"),
            None => name.to_string(),
        }
    }
}

/// A field with all its attributes.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'p> {
    pub page: &'p Page,
    pub field: &'p Field,
}

impl<'p> FieldRef<'p> {
    pub fn name(self) -> &'p str {
        &self.field.name
    }

    pub fn node(self) -> Node<'p> {
        Node {
            page: self.page,
            shape: self.field.shape,
        }
    }

    /// List type, patch strategy, default, enum, gates.
    pub fn extra(self) -> &'p Extra {
        &self.page.extras[usize::from(self.field.extra)]
    }
}
