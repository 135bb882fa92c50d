//! What a schema declares to expressions: a CEL type for every value, and how large it can be.
//!
//! A value whose type is not known, or an object with a name that CEL cannot write, is not visible.
//! Sizes are upper bounds that the schema states, or else what fits into a request: the estimated
//! cost of an expression is computed from them.

mod build;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_cel::escape::escape;
use coracle_cel::types::{Fields, ObjectType, ObjectTypes, Type};

/// The largest request that estimates assume, in bytes.
pub const LARGEST_REQUEST: u64 = 3 * 1024 * 1024;

/// A declared value.
#[derive(Clone, Debug)]
pub struct Declared {
    pub of: Shape,
    /// The most characters, bytes, elements or members it can have; 0 where this has no meaning.
    pub largest: u64,
    /// The fewest bytes of its JSON.
    pub least_json: u64,
}

#[derive(Clone, Debug)]
pub enum Shape {
    Dyn,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Declared>),
    /// Keys are strings.
    Map(Arc<Declared>),
    /// By escaped name.
    Object(Arc<BTreeMap<String, Arc<Declared>>>),
}

impl Declared {
    /// How often a value of this size fits into a request.
    #[must_use]
    pub fn most_in_request(&self) -> u64 {
        LARGEST_REQUEST / (self.least_json + 1)
    }

    /// The CEL type, where objects are named after their place below `name`; the object types are
    /// added to `objects`.
    pub fn cel_type(&self, name: &str, objects: &mut ObjectTypes) -> Type {
        match &self.of {
            Shape::Dyn => Type::Dyn,
            Shape::Bool => Type::Bool,
            Shape::Int => Type::Int,
            Shape::Double => Type::Double,
            Shape::String => Type::String,
            Shape::Bytes => Type::Bytes,
            Shape::Duration => Type::Duration,
            Shape::Timestamp => Type::Timestamp,
            Shape::List(item) => Type::list(item.cel_type(&format!("{name}.@idx"), objects)),
            Shape::Map(value) => Type::map(
                Type::String,
                value.cel_type(&format!("{name}.@elem"), objects),
            ),
            Shape::Object(fields) => {
                let mut types = BTreeMap::new();
                for (field, declared) in fields.iter() {
                    let of = declared.cel_type(&format!("{name}.{field}"), objects);
                    types.insert(Arc::from(field.as_str()), of);
                }

                objects.insert(ObjectType {
                    name: name.into(),
                    fields: Fields::Named(types),
                });
                Type::object(name)
            }
        }
    }

    /// The elements of a list.
    #[must_use]
    pub fn item(&self) -> Option<&Arc<Declared>> {
        match &self.of {
            Shape::List(item) => Some(item),
            _ => None,
        }
    }

    /// The values of a map.
    #[must_use]
    pub fn value(&self) -> Option<&Arc<Declared>> {
        match &self.of {
            Shape::Map(value) => Some(value),
            _ => None,
        }
    }

    /// A property of an object.
    #[must_use]
    pub fn field(&self, property: &str) -> Option<&Arc<Declared>> {
        match &self.of {
            Shape::Object(fields) => fields.get(&*escape(property)?),
            _ => None,
        }
    }

    /// The size of what is at `path` below this value, in the estimator's words: names of fields,
    /// `@items`, `@values`, `@keys`.
    #[must_use]
    pub fn largest_at(&self, path: &[impl AsRef<str>]) -> Option<u64> {
        let mut at = self;
        for (index, step) in path.iter().enumerate() {
            at = match (step.as_ref(), &at.of) {
                ("@items", Shape::List(below)) | ("@values", Shape::Map(below)) => below,
                // Upstream counts keys of maps as empty.
                ("@keys", Shape::Map(_)) => return (index + 1 == path.len()).then_some(0),
                (field, Shape::Object(fields)) => fields.get(field)?,
                _ => return None,
            };
        }
        Some(at.largest)
    }
}
