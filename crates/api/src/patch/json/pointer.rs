//! JSON pointers: resolves a path to its container, and accesses the element there.

use super::ElementError;
use crate::go_text::parse_int;
use crate::patch::open;
use crate::{Map, Text, Value};

/// An object or a list, and the name of an element that may be absent.
pub(super) struct Target<'v> {
    container: Container<'v>,
    key: Text,
}

enum Container<'v> {
    Object(&'v mut Map),
    List(&'v mut Vec<Value>),
}

/// Resolves a path. `None`: there is no container.
pub(super) fn find<'v>(root: &'v mut Value, path: &str) -> Option<Target<'v>> {
    // Anything before the first slash is ignored.
    let (_, below) = path.split_once('/')?;
    let (parents, key) = below
        .rsplit_once('/')
        .map_or((None, below), |(parents, key)| (Some(parents), key));

    let mut container = Container::of(root)?;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        container = Container::of(container.into_member(&unescape(part))?)?;
    }

    Some(Target {
        container,
        key: unescape(key),
    })
}

fn unescape(part: &str) -> Text {
    if part.contains('~') {
        Text::new(part.replace("~1", "/").replace("~0", "~"))
    } else {
        Text::new(part)
    }
}

impl<'v> Container<'v> {
    fn of(value: &'v mut Value) -> Option<Container<'v>> {
        open(value);
        match value {
            Value::Object(map) => Some(Container::Object(map)),
            Value::Array(items) => Some(Container::List(items)),
            _ => None,
        }
    }

    fn into_member(self, key: &str) -> Option<&'v mut Value> {
        match self {
            Container::Object(map) => map.get_mut(key),
            Container::List(items) => {
                let index = within(parse_int(key).ok()?, items.len()).ok()?;
                Some(&mut items[index])
            }
        }
    }
}

impl Target<'_> {
    pub(super) fn key(&self) -> &Text {
        &self.key
    }

    /// The element. Only an index can be invalid: an absent member counts as null.
    pub(super) fn get(&self) -> Result<Option<&Value>, ElementError> {
        match &self.container {
            Container::Object(map) => Ok(map.get(&self.key)),
            Container::List(items) => {
                let index = within(index_of(&self.key)?, items.len())?;
                Ok(Some(&items[index]))
            }
        }
    }

    /// Sets a member, or inserts an element before the index. `-` appends.
    pub(super) fn add(self, value: Value) -> Result<(), ElementError> {
        match self.container {
            Container::Object(map) => {
                map.insert(self.key, value);
            }
            Container::List(items) if self.key == "-" => items.push(value),
            Container::List(items) => {
                let index = parse_int(&self.key).map_err(|reason| ElementError::NoIndexToAdd {
                    key: self.key.clone(),
                    reason,
                })?;
                items.insert(within(index, items.len() + 1)?, value);
            }
        }

        Ok(())
    }

    /// Sets a member, or an existing element.
    pub(super) fn replace(self, value: Value) -> Result<(), ElementError> {
        match self.container {
            Container::Object(map) => {
                map.insert(self.key, value);
            }
            Container::List(items) => {
                let index = within(index_of(&self.key)?, items.len())?;
                items[index] = value;
            }
        }
        Ok(())
    }

    /// Removes the element.
    pub(super) fn remove(self) -> Result<Value, ElementError> {
        match self.container {
            Container::Object(map) => map.remove(&self.key).ok_or(ElementError::NoKey(self.key)),
            Container::List(items) => {
                let index = within(index_of(&self.key)?, items.len())?;
                Ok(items.remove(index))
            }
        }
    }
}

fn index_of(key: &Text) -> Result<i64, ElementError> {
    parse_int(key).map_err(|reason| ElementError::NoIndex {
        key: key.clone(),
        reason,
    })
}

/// An index below `len`; a negative one counts from the end.
fn within(index: i64, len: usize) -> Result<usize, ElementError> {
    let place = match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => usize::try_from(index.unsigned_abs())
            .ok()
            .and_then(|back| len.checked_sub(back)),
    };
    place
        .filter(|place| *place < len)
        .ok_or(ElementError::OutOfBounds(index))
}
