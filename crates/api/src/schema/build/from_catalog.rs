//! Compiles the schema of a built-in kind from the catalogue.
//!
//! Each field has a node of its own, because its default, list type and values belong to the field,
//! not the type. The members of a struct belong to the type and are shared by all fields of that
//! type, so recursive types end.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::Schema;
use super::super::node::{Additional, Checks, Node, NodeId, Property, Type, Types, Unset};
use crate::catalog::{
    Extra, FieldRef, Kind, Node as Shaped, Page, Resource, Shape, Struct, TypeId,
};
use crate::codec::json;
use crate::{Text, Value};

/// Compiles the schema of a kind. `resource` adds the defaults of this kind only.
pub fn for_kind(page: &Page, kind: &Kind, resource: Option<&Resource>) -> Schema {
    let mut builder = Builder {
        nodes: Vec::new(),
        structs: HashMap::new(),
        unfinished: Vec::new(),
    };
    let root = builder.shape(page.root(kind).node());

    while let Some((node, of)) = builder.unfinished.pop() {
        builder.finish(node, page.struct_of(of));
    }

    let mut schema = Schema {
        nodes: builder.nodes,
        root,
    };

    for (path, default) in resource
        .map(|resource| &*resource.defaults)
        .unwrap_or_default()
    {
        schema.set_default(path, value_of(default));
    }

    schema.compute_flags();

    schema
}

struct Builder {
    nodes: Vec<Node>,
    /// The members of the structs visited so far.
    structs: HashMap<TypeId, Arc<[Property]>>,
    /// Nodes of structs that have no members yet.
    unfinished: Vec<(NodeId, TypeId)>,
}

impl Builder {
    fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("a page has fewer fields"));
        self.nodes.push(node);
        id
    }

    fn finish(&mut self, id: NodeId, of: Struct<'_>) {
        let properties = match self.structs.get(&of.id) {
            Some(known) => known.clone(),
            None => {
                let fields: Arc<[Property]> = of.iter().map(|field| self.field(field)).collect();
                self.structs.insert(of.id, fields.clone());
                fields
            }
        };

        let required = of
            .iter()
            .filter(|field| field.field.presence.required())
            .map(|field| Text::new(field.name()));
        let required: Vec<Text> = required.collect();

        let node = &mut self.nodes[id.index()];
        node.properties = properties;

        if !required.is_empty() {
            node.checks.get_or_insert_default().required = required;
        }
    }

    fn field(&mut self, field: FieldRef<'_>) -> Property {
        let node = self.shape(field.node());
        let extra = field.extra();
        let of = &mut self.nodes[node.index()];

        let presence = field.field.presence;
        of.unset = match field.field.shape {
            _ if presence.pointer() => Unset::Null,
            Shape::Struct(_) => Unset::Never,
            _ => Unset::Zero,
        };

        of.default = extra.default.as_ref().map(|text| value_of(text));
        of.milli = extra.milli;
        of.list = extra.list.clone();
        of.map = extra.map.or(of.map);
        let allowed = enumeration(extra, !presence.pointer());

        let listed = of.items.or(of.additional.node());
        if !allowed.is_empty() {
            // The enum of a list or map applies to its elements.
            let index = listed.unwrap_or(node).index();
            self.nodes[index].checks = Some(Box::new(Checks {
                enumeration: allowed,
                ..Checks::default()
            }));
        }

        Property {
            name: Text::new(field.name()),
            node,
        }
    }

    /// The node of a list's or map's elements.
    fn element(&mut self, shaped: Shaped<'_>) -> NodeId {
        let id = self.shape(shaped);
        if matches!(shaped.shape, Shape::Struct(_)) {
            self.nodes[id.index()].unset = Unset::Never;
        }
        id
    }

    fn shape(&mut self, shaped: Shaped<'_>) -> NodeId {
        let of = |types: Types| Node {
            types,
            nullable: true,
            ..Node::default()
        };

        let one = |one: Type| of(Types::One(one));
        match shaped.shape {
            Shape::String | Shape::Bytes | Shape::Time | Shape::MicroTime | Shape::Duration => {
                self.push(one(Type::String))
            }
            Shape::Bool => self.push(one(Type::Boolean)),
            Shape::Int32 | Shape::Int64 => self.push(one(Type::Integer)),
            Shape::Double => self.push(one(Type::Number)),
            Shape::IntOrString => self.push(of(Types::IntOrString)),
            // Quantities may be written as numbers; untyped JSON may be anything.
            Shape::Quantity
            | Shape::Raw(_)
            | Shape::SchemaOrArray(_)
            | Shape::SchemaOrBool(_)
            | Shape::SchemaOrStrings(_) => self.push(Node {
                preserve: true,
                ..of(Types::Any)
            }),
            Shape::Strings | Shape::List(_) => {
                let id = self.push(one(Type::Array));
                let item = self.element(shaped.item().expect("a list has items"));
                self.nodes[id.index()].items = Some(item);
                id
            }
            Shape::Map(_) => {
                let id = self.push(one(Type::Object));
                let item = self.element(shaped.item().expect("a map has values"));
                self.nodes[id.index()].additional = Additional::Node(item);
                id
            }
            Shape::Struct(of_type) => {
                let atomic = shaped.page.struct_of(of_type).declared.atomic;
                let map = atomic.then_some(crate::catalog::MapType::Atomic);
                let id = self.push(Node {
                    map,
                    ..one(Type::Object)
                });
                self.unfinished.push((id, of_type));
                id
            }
        }
    }
}

/// The allowed values; a field that is no pointer may also be empty.
fn enumeration(extra: &Extra, or_empty: bool) -> Vec<Value> {
    let mut values: Vec<Value> = extra
        .enumeration
        .iter()
        .map(|text| Value::String(text.clone()))
        .collect();
    if or_empty && !values.is_empty() {
        values.push(Value::string(""));
    }
    values
}

fn value_of(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("the build script reads every default")
}

impl Schema {
    /// Sets the default of the field at a path: the nodes on the way are copied, so that other
    /// fields of the same types keep theirs.
    fn set_default(&mut self, path: &str, default: Value) {
        let mut at = self.root;
        for name in path.split('.') {
            let mut members = self.node(at).properties.to_vec();
            let index = members.iter().position(|property| property.name == name);
            let index = index.expect("the build script knows every path");
            let copy = NodeId(u32::try_from(self.nodes.len()).expect("a page has fewer fields"));
            let shared = self.node(members[index].node).clone();
            self.nodes.push(shared);
            members[index].node = copy;
            self.nodes[at.index()].properties = members.into();
            at = copy;
        }

        self.nodes[at.index()].default = Some(default);
    }
}
