//! Object types that the user of an environment declares.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Type;

/// An object type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectType {
    pub name: Arc<str>,
    pub fields: Fields,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fields {
    /// These and no others.
    Named(BTreeMap<Arc<str>, Type>),
    /// Every field exists and is `dyn`.
    Any,
}

impl ObjectType {
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Type> {
        match &self.fields {
            Fields::Named(fields) => fields.get(name).cloned(),
            Fields::Any => Some(Type::Dyn),
        }
    }
}

/// The object types of an environment, by name.
#[derive(Clone, Debug, Default)]
pub struct ObjectTypes(BTreeMap<Arc<str>, Arc<ObjectType>>);

impl ObjectTypes {
    pub fn insert(&mut self, object: ObjectType) {
        self.0.insert(Arc::clone(&object.name), Arc::new(object));
    }

    /// Adds those of `other`, which replace those of the same name.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<ObjectType>> {
        self.0.get(name)
    }
}
