//! Types of values, as server-side apply sees them.
//!
//! One engine serves three sorts of objects. A [`Type`] comes from the catalogue (built-in kinds),
//! from a schema built at run time ([`Declared`], custom resources), or is deduced (objects without
//! a schema: maps are merged field by field, lists are owned as a whole). All three resolve to an
//! [`Atom`]: whether a scalar, a list or a map is allowed, and how the parts of a list or map are
//! identified and owned.

mod catalogue;
mod declared;

pub use catalogue::CatalogueType;
pub use declared::{Declared, SchemaError};

use crate::catalog::{BUILTIN, Node};
use crate::{Text, Value};

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Type<'s> {
    Catalogue(CatalogueType<'s>),
    Declared(&'s Declared),
    /// Deduced from the value: maps field by field, lists as a whole.
    Deduced,
    /// Any value, owned as a whole.
    Whole,
}

impl<'s> Type<'s> {
    /// The type of objects of a built-in kind.
    pub fn of_kind(api_version: &str, kind: &str) -> Option<Type<'static>> {
        let kind = BUILTIN.kind_of(api_version, kind)?;
        Some(Type::catalogue(BUILTIN.root(kind).node()))
    }

    /// A type of the catalogue without attributes of a field.
    pub fn catalogue(node: Node<'s>) -> Type<'s> {
        Type::Catalogue(CatalogueType { node, extra: None })
    }

    pub(super) fn atom(self) -> Atom<'s> {
        match self {
            Type::Catalogue(of_catalogue) => of_catalogue.atom(),
            Type::Declared(declared) => declared.atom(),
            Type::Deduced => Atom {
                scalar: Some(Scalar::Any),
                list: Some(List::WHOLE),
                map: Some(Fields::deduced(false)),
            },
            Type::Whole => Atom {
                scalar: Some(Scalar::Any),
                list: Some(List::WHOLE),
                map: Some(Fields::whole()),
            },
        }
    }
}

/// The values that a type allows: one of these, or any of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atom<'s> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List<'s>>,
    pub(super) map: Option<Fields<'s>>,
}

impl<'s> Atom<'s> {
    pub(super) const NOTHING: Atom<'static> = Atom {
        scalar: None,
        list: None,
        map: None,
    };

    fn scalar(scalar: Scalar) -> Atom<'s> {
        Atom {
            scalar: Some(scalar),
            ..Atom::NOTHING
        }
    }

    fn list(list: List<'s>) -> Atom<'s> {
        Atom {
            list: Some(list),
            ..Atom::NOTHING
        }
    }

    fn map(map: Fields<'s>) -> Atom<'s> {
        Atom {
            map: Some(map),
            ..Atom::NOTHING
        }
    }

    /// Decides which alternative a value is treated as. A value of no allowed type, and null, is
    /// treated as what is allowed: maps before scalars before lists.
    pub(super) fn case(&self, value: &Value) -> Case<'s> {
        let by_value = match value {
            Value::Null => None,
            Value::Array(_) => self.list.map(Case::List),
            Value::Object(_) => self.map.map(Case::Map),
            Value::Raw(raw) => match raw.type_name() {
                "object" => self.map.map(Case::Map),
                "array" => self.list.map(Case::List),
                "null" => None,
                _ => self.scalar.map(Case::Scalar),
            },
            _ => self.scalar.map(Case::Scalar),
        };

        by_value
            .or(self.map.map(Case::Map))
            .or(self.scalar.map(Case::Scalar))
            .or(self.list.map(Case::List))
            .unwrap_or(Case::Nothing)
    }
}

/// The alternative that a value is treated as.
#[derive(Clone, Copy, Debug)]
pub(super) enum Case<'s> {
    Scalar(Scalar),
    List(List<'s>),
    Map(Fields<'s>),
    /// The schema allows no value at all.
    Nothing,
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    String,
    Number,
    Bool,
    Any,
}

/// A list: the type of its elements, and what identifies them.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'s> {
    pub(super) item: Type<'s>,
    pub(super) relationship: Relationship<'s>,
}

impl List<'static> {
    const WHOLE: List<'static> = List {
        item: Type::Whole,
        relationship: Relationship::Atomic,
    };
}

/// How the elements of a list are identified and owned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Relationship<'s> {
    /// Not at all: the list is owned as a whole.
    Atomic,
    /// By their values.
    Set,
    /// By the values of these fields.
    Keys(&'s [Text]),
}

/// A struct or map: its fields, and whether it is owned as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'s> {
    pub(super) whole: bool,
    declared: Members<'s>,
    /// The type of undeclared members; `None`: there may be none.
    pub(super) other: Option<Type<'s>>,
}

#[derive(Clone, Copy, Debug)]
enum Members<'s> {
    None,
    Struct(crate::catalog::Struct<'s>),
    Declared(&'s [declared::DeclaredField]),
}

impl<'s> Fields<'s> {
    fn deduced(whole: bool) -> Fields<'s> {
        Fields {
            whole,
            declared: Members::None,
            other: Some(Type::Deduced),
        }
    }

    fn whole() -> Fields<'s> {
        Fields {
            whole: true,
            declared: Members::None,
            other: Some(Type::Whole),
        }
    }

    /// The type of a member, and whether a field declares it. `None`: it is not allowed.
    pub(super) fn member(&self, name: &str) -> Option<(Type<'s>, bool)> {
        match self.field(name) {
            Some(of) => Some((of, true)),
            None => self.other.map(|other| (other, false)),
        }
    }

    /// The type of a declared field.
    pub(super) fn field(&self, name: &str) -> Option<Type<'s>> {
        match self.declared {
            Members::None => None,
            Members::Struct(of) => of.field(name).map(Type::of_field),
            Members::Declared(fields) => {
                declared::find(fields, name).map(declared::DeclaredField::of)
            }
        }
    }

    /// The value of a key that is not given.
    pub(super) fn default(&self, name: &str) -> Option<Value> {
        match self.declared {
            Members::None => None,
            Members::Struct(of) => of.field(name).and_then(catalogue::published_default),
            Members::Declared(fields) => {
                declared::find(fields, name).and_then(|field| field.default.clone())
            }
        }
    }

    /// Whether this is a map without declared fields whose values are of any type: its field sets
    /// are never adapted to a changed schema.
    pub(super) fn is_deduced(&self) -> bool {
        matches!(self.declared, Members::None) && matches!(self.other, Some(Type::Deduced))
    }
}
