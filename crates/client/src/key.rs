//! The key of an object among those of its resource.

use std::fmt;
use std::str::FromStr;

use coracle_api::meta::ObjectMeta;
use coracle_api::{Text, Value};

/// `namespace/name`, or only the name for a cluster-scoped object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for cluster-scoped objects.
    pub namespace: Text,
    /// The object's name.
    pub name: Text,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn new(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey {
            namespace: Text::new(namespace),
            name: Text::new(name),
        }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> ObjectKey {
        ObjectKey::new("", name)
    }

    /// The key of an object.
    pub fn of(object: &Value) -> ObjectKey {
        ObjectKey::of_meta(object.meta())
    }

    /// The key in an object's metadata.
    pub fn of_meta(meta: ObjectMeta<'_>) -> ObjectKey {
        ObjectKey::new(meta.namespace(), meta.name())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => out.write_str(&self.name),
            namespace => write!(out, "{namespace}/{}", self.name),
        }
    }
}

/// A key has at most one slash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected key format: {0:?}")]
pub struct InvalidKey(String);

impl FromStr for ObjectKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<ObjectKey, InvalidKey> {
        match text.split_once('/') {
            None => Ok(ObjectKey::cluster(text)),
            Some((namespace, name)) if !name.contains('/') => Ok(ObjectKey::new(namespace, name)),
            Some(_) => Err(InvalidKey(text.to_string())),
        }
    }
}
