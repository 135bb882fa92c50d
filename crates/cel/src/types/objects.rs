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
    /// These, and others to which nothing can be assigned.
    Untyped(BTreeMap<Arc<str>, Type>),
    /// Every field exists and is `dyn`.
    Any,
}

impl ObjectType {
    /// Whether a field exists that no value fits.
    pub(crate) fn is_untyped(&self, name: &str) -> bool {
        matches!(self.fields, Fields::Untyped(_)) && self.field(name).is_none()
    }

    #[must_use]
    pub fn field(&self, name: &str) -> Option<Type> {
        match &self.fields {
            // A reserved word is the name of a field too, and is declared in its escaped form.
            Fields::Named(fields) | Fields::Untyped(fields) => {
                let escaped = || fields.get(format!("__{name}__").as_str());
                fields.get(name).or_else(escaped).cloned()
            }
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

    /// The type of this name. Where every field of `A` exists, so does the type `A.b` of what is in
    /// its field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<ObjectType>> {
        let of_field = || {
            let (object, _) = name.split_once('.')?;
            let found = self.0.get(object)?;
            (found.fields == Fields::Any).then_some(found)
        };
        self.0.get(name).or_else(of_field)
    }
}
