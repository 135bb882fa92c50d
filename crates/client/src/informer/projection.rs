//! What is cached of an object.

use std::ops::Deref;
use std::sync::Arc;

use coracle_api::meta::ObjectMeta;
use coracle_api::typed::{self, TypedError};
use coracle_api::{Map, Value};
use serde::de::DeserializeOwned;

/// What is cached of an object. The smaller it is, the more objects fit into memory.
pub trait Projection: Sized + Send + Sync + 'static {
    /// Whether the metadata suffice: then the server need not send the rest.
    const METADATA_ONLY: bool = false;

    /// The projection of an object, which has no `managedFields`. The tree may be shared: to keep
    /// all of it, clone the `Arc`.
    fn project(object: &Arc<Value>) -> Result<Self, TypedError>;
}

/// The whole object.
pub type Whole = Arc<Value>;

impl Projection for Whole {
    fn project(object: &Arc<Value>) -> Result<Whole, TypedError> {
        Ok(object.clone())
    }
}

/// The object's metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata(Value);

impl Metadata {
    /// The metadata.
    pub fn meta(&self) -> ObjectMeta<'_> {
        self.0.meta()
    }
}

impl Projection for Metadata {
    const METADATA_ONLY: bool = true;

    fn project(object: &Arc<Value>) -> Result<Metadata, TypedError> {
        let mut kept = Map::with_capacity(1);
        kept.insert(
            "metadata",
            object.get("metadata").cloned().unwrap_or_default(),
        );
        Ok(Metadata(Value::Object(kept)))
    }
}

/// A built-in kind as a typed struct: convenient, and several times as large as the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed<K>(pub K);

impl<K> Deref for Typed<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Projection for Typed<K> {
    fn project(object: &Arc<Value>) -> Result<Typed<K>, TypedError> {
        typed::from_tree(object).map(Typed)
    }
}
