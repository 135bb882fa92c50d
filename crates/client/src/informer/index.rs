//! Indexes: objects by another value than their key.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Text;

use super::Cached;
use crate::key::ObjectKey;

/// The values that an object has in an index.
pub(super) type ValuesOf<T> = Box<dyn Fn(&Cached<T>) -> Vec<Text> + Send + Sync>;

/// Why an index cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// An index of that name exists already.
    #[error("indexer conflict: {0}")]
    Twice(&'static str),
    /// There is no such index.
    #[error("index with name {0} does not exist")]
    Unknown(String),
}

type Objects<T> = BTreeMap<ObjectKey, Arc<Cached<T>>>;

pub(super) struct Index<T> {
    pub(super) name: &'static str,
    of: ValuesOf<T>,
    objects: BTreeMap<Text, Objects<T>>,
}

impl<T> Index<T> {
    pub(super) fn new(name: &'static str, of: ValuesOf<T>) -> Index<T> {
        Index {
            name,
            of,
            objects: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, object: &Arc<Cached<T>>) {
        for value in (self.of)(object) {
            self.objects
                .entry(value)
                .or_default()
                .insert(object.key.clone(), object.clone());
        }
    }

    /// Usually the values do not change and only the object is replaced.
    pub(super) fn replace(&mut self, old: &Cached<T>, new: &Arc<Cached<T>>) {
        let (before, after) = ((self.of)(old), (self.of)(new));
        if before != after {
            self.take_from(&before, &old.key);
        }
        for value in after {
            let objects = self.objects.entry(value).or_default();
            match objects.get_mut(&new.key) {
                Some(held) => *held = new.clone(),
                None => drop(objects.insert(new.key.clone(), new.clone())),
            }
        }
    }

    pub(super) fn remove(&mut self, object: &Cached<T>) {
        self.take_from(&(self.of)(object), &object.key);
    }

    fn take_from(&mut self, values: &[Text], key: &ObjectKey) {
        for value in values {
            if let Some(objects) = self.objects.get_mut(value) {
                objects.remove(key);
                if objects.is_empty() {
                    self.objects.remove(value);
                }
            }
        }
    }

    pub(super) fn objects_of(&self, value: &str) -> impl Iterator<Item = &Arc<Cached<T>>> {
        self.objects
            .get(value)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    pub(super) fn objects_like(&self, object: &Cached<T>) -> Vec<Arc<Cached<T>>> {
        let values = (self.of)(object);
        let alike = values
            .iter()
            .filter_map(|value| self.objects.get(value))
            .flatten();
        let alike: BTreeMap<&ObjectKey, &Arc<Cached<T>>> = alike.collect();
        alike.into_values().cloned().collect()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Text> {
        self.objects.keys()
    }
}
