//! Identification of list elements.

use std::cmp::Ordering;

use crate::apply::element::Element;
use crate::apply::types::{List, Relationship};
use crate::fuzz::steps;
use crate::{Text, Value};

/// Why an element of a list cannot be identified. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ItemError {
    #[error("associative list with keys may not have a null element")]
    NullWithKeys,
    #[error("associative list with keys may not have non-map elements")]
    NoMap,
    #[error("couldn't find default value for {0}: associative list may not have non-map types")]
    KeysOfScalars(Text),
    #[error(
        "associative list with keys has an element that omits all key fields [{}] \
         (and doesn't have default values for any key fields)",
        .0.join(" ")
    )]
    NoKey(Vec<String>),
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error("invalid indexing of non-associative list")]
    Whole,
}

/// The path element of an item of a list, if it has one.
pub(in crate::apply) fn element_at(list: &List<'_>, item: &Value) -> Option<Element> {
    element_of(list, item).ok()
}

/// The path element of an item of a list.
pub(super) fn element_of(list: &List<'_>, item: &Value) -> Result<Element, ItemError> {
    steps::count(1);

    match (list.relationship, item) {
        (Relationship::Atomic, _) => Err(ItemError::Whole),
        (Relationship::Keys(keys), Value::Object(fields)) => {
            let mut key = Vec::with_capacity(keys.len());
            for name in keys {
                let value = match fields.get(name) {
                    Some(value) => Some(value.clone()),
                    None => default_of(list, name)?,
                };
                key.extend(value.map(|value| (name.clone(), value)));
            }

            if key.is_empty() && !keys.is_empty() {
                return Err(ItemError::NoKey(
                    keys.iter().map(|key| format!("{key:?}")).collect(),
                ));
            }

            Ok(Element::key(key))
        }
        (Relationship::Keys(_), Value::Null) => Err(ItemError::NullWithKeys),
        (Relationship::Keys(_), _) => Err(ItemError::NoMap),
        (Relationship::Set, Value::Object(_)) => Err(ItemError::MapInSet),
        (Relationship::Set, Value::Array(_)) => Err(ItemError::ListInSet),
        (Relationship::Set, Value::Null) => Err(ItemError::NullInSet),
        (Relationship::Set, value) => Ok(Element::Value(value.clone())),
    }
}

/// A key field that is not given and has no default is left out of the path element: the item
/// differs from any that has the field.
fn default_of(list: &List<'_>, name: &Text) -> Result<Option<Value>, ItemError> {
    match list.item.atom().map {
        Some(fields) => Ok(fields.default(name)),
        None => Err(ItemError::KeysOfScalars(name.clone())),
    }
}

/// The elements of one or two lists, numbered; equal path elements have the same number, and
/// numbers ascend with the path elements.
pub(super) struct Index {
    /// The path elements, sorted, each once.
    pub(super) elements: Vec<Element>,
    /// The number of each item of the first list, and of the second.
    pub(super) left: Vec<usize>,
    pub(super) right: Vec<usize>,
}

impl Index {
    pub(super) fn new(left: Vec<Element>, right: Vec<Element>) -> Index {
        let split = left.len();
        let mut all: Vec<(usize, Element)> = left.into_iter().chain(right).enumerate().collect();

        let order = |a: &(usize, Element), b: &(usize, Element)| {
            steps::count(1);
            a.1.cmp(&b.1)
        };
        all.sort_by(order);

        let mut numbers = vec![0; all.len()];
        let mut elements: Vec<Element> = Vec::with_capacity(all.len());
        for (index, element) in all {
            if elements
                .last()
                .is_none_or(|last| last.cmp(&element) != Ordering::Equal)
            {
                elements.push(element);
            }
            numbers[index] = elements.len() - 1;
        }

        let right = numbers.split_off(split);
        Index {
            elements,
            left: numbers,
            right,
        }
    }
}
