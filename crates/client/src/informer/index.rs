//! Objects by something else than their key.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Text;

use super::Cached;
use crate::key::ObjectKey;

/// The values that an object has in an index.
pub(super) type ValuesOf<T> = Box<dyn Fn(&Cached<T>) -> Vec<Text> + Send + Sync>;

/// What is wrong with the name of an index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// There is one already.
    #[error("indexer conflict: {0}")]
    Twice(&'static str),
    /// There is none.
    #[error("index with name {0} does not exist")]
    Unknown(String),
}

pub(super) struct Index<T> {
    pub(super) name: &'static str,
    of: ValuesOf<T>,
    keys: BTreeMap<Text, BTreeSet<ObjectKey>>,
}

impl<T> Index<T> {
    pub(super) fn new(name: &'static str, of: ValuesOf<T>) -> Index<T> {
        Index { name, of, keys: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, object: &Cached<T>) {
        for value in (self.of)(object) {
            self.keys.entry(value).or_default().insert(object.key.clone());
        }
    }

    pub(super) fn remove(&mut self, object: &Cached<T>) {
        for value in (self.of)(object) {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(&object.key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }

    pub(super) fn keys_of(&self, value: &str) -> impl Iterator<Item = &ObjectKey> {
        self.keys.get(value).into_iter().flatten()
    }

    pub(super) fn keys_like(&self, object: &Cached<T>) -> BTreeSet<&ObjectKey> {
        let values = (self.of)(object);
        values.iter().filter_map(|value| self.keys.get(value)).flatten().collect()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Text> {
        self.keys.keys()
    }
}
