//! Identification of list elements: by the value of their merge key, or by themselves if they are
//! scalars.

use std::collections::HashMap;

use super::Error;
use crate::fuzz::steps;
use crate::{Text, Value};

/// A hashable scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(Text),
}

impl Key {
    /// `None`: not a scalar, which equals nothing.
    pub(super) fn of(value: &Value) -> Option<Key> {
        match value {
            Value::Null => Some(Key::Null),
            Value::Bool(flag) => Some(Key::Bool(*flag)),
            Value::Int(number) => Some(Key::Int(*number)),
            // Adding zero turns the negative zero into a positive one: they are equal.
            Value::Float(number) => Some(Key::Float((number + 0.0).to_bits())),
            Value::String(text) => Some(Key::Text(text.clone())),
            Value::Raw(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// What identifies the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Identity<'k> {
    Itself,
    Member(&'k str),
}

impl<'k> Identity<'k> {
    pub(super) fn by(merge_key: &'k str) -> Identity<'k> {
        if merge_key.is_empty() {
            Identity::Itself
        } else {
            Identity::Member(merge_key)
        }
    }

    /// The element's key; an error if it has none.
    pub(super) fn required(self, element: &Value) -> Result<Option<Key>, Error> {
        match self {
            Identity::Itself => Ok(Key::of(element)),
            Identity::Member(name) => {
                let map = element
                    .as_object()
                    .ok_or_else(|| Error::not_a_map(element))?;
                map.get(name)
                    .map(Key::of)
                    .ok_or_else(|| Error::no_merge_key(map, name))
            }
        }
    }

    /// The element's key, if it has one.
    pub(super) fn find(self, element: &Value) -> Option<Key> {
        match self {
            Identity::Itself => Key::of(element),
            Identity::Member(name) => Key::of(element.get(name)?),
        }
    }
}

/// The first index of each key in a list.
///
/// Most lists are short, and a scan over a few keys is cheaper than hashing.
pub(super) enum Ranks {
    Few(Vec<(Key, usize)>),
    Many(HashMap<Key, usize>),
}

/// From this length on keys are hashed.
const MANY: usize = 16;

impl Default for Ranks {
    fn default() -> Ranks {
        Ranks::Few(Vec::new())
    }
}

impl Ranks {
    pub(super) fn of(list: &[Value], identity: Identity<'_>) -> Ranks {
        let mut ranks = match list.len() {
            ..MANY => Ranks::Few(Vec::with_capacity(list.len())),
            count => Ranks::Many(HashMap::with_capacity(count)),
        };
        for (index, element) in list.iter().enumerate() {
            steps::count(1);
            if let Some(key) = identity.find(element) {
                ranks.insert(key, index);
            }
        }
        ranks
    }

    pub(super) fn get(&self, key: &Option<Key>) -> Option<usize> {
        let key = key.as_ref()?;
        match self {
            Ranks::Few(few) => few
                .iter()
                .find(|(other, _)| other == key)
                .map(|(_, index)| *index),
            Ranks::Many(many) => many.get(key).copied(),
        }
    }

    /// Adds a key unless it is present.
    pub(super) fn insert(&mut self, key: Key, index: usize) {
        match self {
            Ranks::Few(few) if few.len() < MANY => {
                if !few.iter().any(|(other, _)| *other == key) {
                    few.push((key, index));
                }
            }
            Ranks::Few(few) => {
                let mut many: HashMap<Key, usize> = few.drain(..).collect();
                many.entry(key).or_insert(index);
                *self = Ranks::Many(many);
            }
            Ranks::Many(many) => {
                many.entry(key).or_insert(index);
            }
        }
    }
}

/// Whether the elements of merged lists are objects. Mixed lists are an error.
pub(super) fn are_objects(lists: &[&[Value]]) -> Result<bool, Error> {
    let mut elements = lists.iter().flat_map(|list| list.iter());
    let Some(first) = elements.next() else {
        return Err(Error::NoElements);
    };
    match first {
        Value::Array(_) => return Err(Error::ListOfLists),
        Value::Null => return Err(Error::mixed(lists)),
        _ => {}
    }

    let sort = std::mem::discriminant(first);
    steps::count(lists.iter().map(|list| list.len()).sum());

    if elements.any(|element| std::mem::discriminant(element) != sort) {
        return Err(Error::mixed(lists));
    }

    Ok(matches!(first, Value::Object(_)))
}
