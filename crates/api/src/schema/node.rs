//! The nodes of a compiled schema.

use std::cmp::Ordering;
use std::sync::Arc;

use super::format::Format;
use super::pattern::Pattern;
use crate::catalog::{ListType, MapType};
use crate::{Text, Value};

/// An index into [`super::Schema`]'s nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The type of one value, and its constraints.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub types: Types,
    pub nullable: bool,
    /// The value that defaulting sets.
    pub default: Option<Value>,
    pub unset: Unset,
    /// Defaulting rounds the quantities in this map up to thousandths.
    pub milli: bool,
    /// Undeclared members are kept.
    pub preserve: bool,
    /// The value is an embedded object, with `apiVersion`, `kind` and `metadata`.
    pub embedded: bool,
    /// Sorted by name; shared between the fields of one type.
    pub properties: Arc<[Property]>,
    /// Indices of the properties that defaulting sets.
    pub(crate) filled: Box<[u16]>,
    /// The constraint on undeclared members.
    pub additional: Additional,
    pub items: Option<NodeId>,
    /// The list type in server-side apply. `None`: atomic.
    pub list: Option<ListType>,
    /// The map type in server-side apply. `None`: granular.
    pub map: Option<MapType>,
    /// Constraints beyond the type.
    pub checks: Option<Box<Checks>>,
    /// `x-kubernetes-validations`, for the caller to evaluate.
    pub rules: Arc<[Rule]>,
    /// What concerns this value or something below it.
    pub flags: Flags,
}

impl Node {
    pub fn property(&self, name: &str) -> Option<&Property> {
        let index = self
            .properties
            .binary_search_by(|property| property.name.as_str().cmp(name))
            .ok()?;
        Some(&self.properties[index])
    }

    /// Finds properties for a reader whose names are sorted: a short scan instead of a search.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder {
            ahead: &self.properties,
        }
    }

    /// The fields that identify the elements of this list, if it is of type map.
    pub fn list_keys(&self) -> Option<&[Text]> {
        match &self.list {
            Some(ListType::Map(keys)) => Some(keys),
            _ => None,
        }
    }

    /// Server-side apply owns the value as a whole.
    pub fn is_atomic(&self) -> bool {
        match self.types {
            Types::One(Type::Array) => matches!(self.list, None | Some(ListType::Atomic)),
            _ => self.map == Some(MapType::Atomic),
        }
    }
}

pub(crate) struct InOrder<'n> {
    ahead: &'n [Property],
}

impl InOrder<'_> {
    pub(crate) fn find(&mut self, name: &str) -> Option<NodeId> {
        while let Some((first, rest)) = self.ahead.split_first() {
            match first.name.as_str().cmp(name) {
                Ordering::Less => self.ahead = rest,
                Ordering::Equal => {
                    self.ahead = rest;
                    return Some(first.node);
                }
                Ordering::Greater => return None,
            }
        }
        None
    }
}

#[derive(Clone, Debug)]
pub struct Property {
    pub name: Text,
    pub node: NodeId,
}

/// The type of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Types {
    #[default]
    Any,
    One(Type),
    IntOrString,
    /// A type that JSON does not have. No value matches; old definitions may contain it.
    Unknown(Text),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// Its name in schemas and messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Type> {
        let all = [
            Type::Object,
            Type::Array,
            Type::String,
            Type::Integer,
            Type::Number,
            Type::Boolean,
        ];
        all.into_iter().find(|of| of.name() == name)
    }
}

impl Types {
    pub(crate) fn includes(&self, wanted: Type) -> bool {
        match self {
            Types::One(of) => *of == wanted,
            Types::IntOrString => matches!(wanted, Type::Integer | Type::String),
            Types::Any | Types::Unknown(_) => false,
        }
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        match self {
            Types::Any => "",
            Types::One(of) => of.name(),
            Types::IntOrString => "integer,string",
            Types::Unknown(name) => name,
        }
    }
}

/// The constraint on members of an object that no property declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Additional {
    /// Not specified: they are valid, and pruned.
    #[default]
    Unsaid,
    /// `false`.
    Refused,
    /// `true`.
    Any,
    Node(NodeId),
}

impl Additional {
    pub fn node(self) -> Option<NodeId> {
        match self {
            Additional::Node(id) => Some(id),
            _ => None,
        }
    }
}

/// When a field counts as unset, beyond being absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unset {
    /// Custom resources: null where the field is not nullable.
    #[default]
    NullIfNotNullable,
    /// Built-in pointers: null.
    Null,
    /// Built-in values: null and the zero value of the type.
    Zero,
    /// Built-in non-pointer structs: never unset; absent counts as empty, and its fields have their
    /// defaults.
    Never,
}

/// Constraints of a value beyond its type. Each applies to values of its type only.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// The name as written, for messages.
    pub format_name: Text,
    pub format: Option<Format>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub pattern: Option<Pattern>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub unique_items: bool,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    /// As declared: errors are reported in this order.
    pub required: Vec<Text>,
    pub enumeration: Vec<Value>,
    pub all_of: Vec<NodeId>,
    pub any_of: Vec<NodeId>,
    pub one_of: Vec<NodeId>,
    pub not: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub value: f64,
    pub exclusive: bool,
}

/// One of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    pub rule: Text,
    pub message: Text,
    pub message_expression: Text,
    pub reason: Option<Text>,
    pub field_path: Text,
    pub optional_old_self: Option<bool>,
}

/// What concerns a value or something below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub(crate) u8);

impl Flags {
    /// There is something to validate.
    pub const CHECKS: Flags = Flags(1);
    pub const DEFAULTS: Flags = Flags(2);
    /// There are lists of type set or map.
    pub const LISTS: Flags = Flags(4);
    pub const EMBEDDED: Flags = Flags(8);
    /// There are CEL rules.
    pub const RULES: Flags = Flags(16);
    /// Something could be pruned.
    pub const PRUNES: Flags = Flags(32);
    /// A null could be removed.
    pub const NULLS: Flags = Flags(64);

    pub fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn add(&mut self, flags: Flags) {
        self.0 |= flags.0;
    }
}
