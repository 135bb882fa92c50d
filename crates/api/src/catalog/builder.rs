//! Builds pages at run time: the kinds of custom resources.

use std::borrow::Cow;
use std::collections::HashMap;

use super::model::{Presence, Span};
use super::{
    Extra, Field, FieldRef, Item, ItemId, Kind, NameIndex, Page, Resource, Shape, Struct, Type,
    TypeId,
};
use crate::{Text, Value};

/// Collects types, kinds and resources into a page.
///
/// Types of another page ([`PageBuilder::import`]) are copied with all types they refer to. An
/// *open* struct keeps members that it does not declare; a schema decides what they may be.
#[derive(Debug, Default)]
pub struct PageBuilder {
    types: Vec<Type>,
    fields: Vec<Field>,
    always: Vec<u16>,
    items: Vec<Item>,
    extras: Vec<Extra>,
    kinds: Vec<Kind>,
    resources: Vec<Resource>,
    imported: HashMap<Text, TypeId>,
    published: Vec<(TypeId, Value)>,
}

impl PageBuilder {
    pub fn new() -> PageBuilder {
        // Row 0 is the empty one.
        PageBuilder {
            extras: vec![Extra::default()],
            ..PageBuilder::default()
        }
    }

    /// The root of a custom resource: apiVersion, kind, metadata, and any other members.
    pub fn custom_root(&mut self, metadata: Struct<'_>) -> TypeId {
        let metadata = self.import(metadata);
        let optional = Presence(Presence::OMIT_EMPTY);
        let field = |name: &'static str, shape| Field {
            name: Text::const_new(name),
            shape,
            presence: optional,
            extra: 0,
        };

        let fields = vec![
            field("apiVersion", Shape::String),
            field("kind", Shape::String),
            field("metadata", Shape::Struct(metadata)),
        ];

        self.add_struct(Text::default(), fields, true)
    }

    /// Sets the published schema of an open type.
    pub fn publish(&mut self, id: TypeId, schema: Value) {
        self.published.push((id, schema));
    }

    /// The list of a custom resource's objects.
    pub fn custom_list(&mut self, of: TypeId, metadata: Struct<'_>) -> TypeId {
        let metadata = self.import(metadata);
        self.items.push(Item {
            shape: Shape::Struct(of),
        });

        let items = Shape::List(ItemId(last_row(self.items.len())));
        let field = |name: &'static str, shape, presence| Field {
            name: Text::const_new(name),
            shape,
            presence: Presence(presence),
            extra: 0,
        };

        let fields = vec![
            field("apiVersion", Shape::String, Presence::OMIT_EMPTY),
            field("items", items, Presence::REQUIRED),
            field("kind", Shape::String, Presence::OMIT_EMPTY),
            field("metadata", Shape::Struct(metadata), Presence::OMIT_EMPTY),
        ];

        self.add_struct(Text::default(), fields, false)
    }

    /// Adds a struct with the given fields.
    pub fn add_struct(&mut self, name: Text, mut fields: Vec<Field>, open: bool) -> TypeId {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let id = self.reserve(name, open);
        self.fill(id, fields);
        id
    }

    /// Copies a struct of another page, with all types it refers to.
    pub fn import(&mut self, of: Struct<'_>) -> TypeId {
        if let Some(known) = self.imported.get(&of.declared.name) {
            return *known;
        }
        let id = self.reserve(of.declared.name.clone(), of.declared.open);
        let declared = &mut self.types[usize::from(id.0)];
        declared.atomic = of.declared.atomic;
        declared.package = of.declared.package.clone();
        self.imported.insert(of.declared.name.clone(), id);
        let fields = of.iter().map(|field| self.import_field(field)).collect();
        self.fill(id, fields);
        id
    }

    fn import_field(&mut self, field: FieldRef<'_>) -> Field {
        let shape = self.import_shape(field.node());
        let extra = match field.field.extra {
            0 => 0,
            _ => {
                self.extras.push(field.extra().clone());
                last_row(self.extras.len())
            }
        };

        Field {
            name: field.field.name.clone(),
            shape,
            presence: field.field.presence,
            extra,
        }
    }

    fn import_shape(&mut self, node: super::Node<'_>) -> Shape {
        let of = |id| node.page.struct_of(id);
        match node.shape {
            Shape::Struct(id) => Shape::Struct(self.import(of(id))),
            Shape::SchemaOrArray(id) => Shape::SchemaOrArray(self.import(of(id))),
            Shape::SchemaOrBool(id) => Shape::SchemaOrBool(self.import(of(id))),
            Shape::SchemaOrStrings(id) => Shape::SchemaOrStrings(self.import(of(id))),
            Shape::List(_) => Shape::List(self.import_item(node)),
            Shape::Map(_) => Shape::Map(self.import_item(node)),
            other => other,
        }
    }

    fn import_item(&mut self, node: super::Node<'_>) -> ItemId {
        let shape = self.import_shape(node.item().expect("lists and maps have items"));
        self.items.push(Item { shape });
        ItemId(last_row(self.items.len()))
    }

    /// Adds a kind whose objects are of the given type.
    pub fn add_kind(&mut self, group: &str, version: &str, name: &str, type_id: TypeId) {
        self.kinds.push(Kind {
            group: Text::new(group),
            version: Text::new(version),
            name: Text::new(name),
            type_id,
        });
    }

    pub fn add_resource(&mut self, resource: Resource) {
        self.resources.push(resource);
    }

    pub fn finish(mut self) -> Page {
        self.kinds
            .sort_by(|a, b| (&a.group, &a.version, &a.name).cmp(&(&b.group, &b.version, &b.name)));
        self.resources.sort_by(|a, b| {
            (&a.group, &a.version, &a.plural).cmp(&(&b.group, &b.version, &b.plural))
        });

        Page {
            types: Cow::Owned(self.types),
            fields: Cow::Owned(self.fields),
            always: Cow::Owned(self.always),
            wires: Cow::Borrowed(&[]),
            items: Cow::Owned(self.items),
            extras: Cow::Owned(self.extras),
            unions: Cow::Borrowed(&[]),
            kinds: Cow::Owned(self.kinds),
            resources: Cow::Owned(self.resources),
            published: self.published,
            kinds_by_name: NameIndex::new(),
            resources_by_name: NameIndex::new(),
        }
    }

    /// Reserves a row for a type whose fields follow later, so that it can refer to itself.
    fn reserve(&mut self, name: Text, open: bool) -> TypeId {
        self.types.push(Type {
            name,
            package: Text::default(),
            json_only: true,
            atomic: false,
            open,
            fields: Span::default(),
            always: Span::default(),
            wires: Span::default(),
            unions: Span::default(),
        });

        TypeId(last_row(self.types.len()))
    }

    fn fill(&mut self, id: TypeId, fields: Vec<Field>) {
        let always: Vec<u16> = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| crate::codec::canonical::when_unset(field).is_some())
            .map(|(index, _)| u16::try_from(index).expect("a struct has few fields"))
            .collect();
        let declared = &mut self.types[usize::from(id.0)];
        declared.fields = span(self.fields.len(), fields.len());
        declared.always = span(self.always.len(), always.len());
        self.fields.extend(fields);
        self.always.extend(always);
    }
}

/// Index of the last row of a table with that many rows.
fn last_row(rows: usize) -> u16 {
    u16::try_from(rows - 1).expect("a page has fewer than 65,536 rows of a kind")
}

fn span(start: usize, len: usize) -> Span {
    let number = |n: usize| u32::try_from(n).expect("a page is small");
    Span::new(number(start), number(len))
}
