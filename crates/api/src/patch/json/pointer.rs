//! Places in a tree: from a path to the container that holds them, and what can be done there.

use super::PlaceError;
use crate::go_text::parse_int;
use crate::patch::open;
use crate::{Map, Text, Value};

/// An object or a list, and the name of a place in it that need not be there.
pub(super) struct Place<'v> {
    container: Container<'v>,
    key: Text,
}

enum Container<'v> {
    Object(&'v mut Map),
    List(&'v mut Vec<Value>),
}

/// The place that a path leads to. `None`: there is no container to hold it.
pub(super) fn find<'v>(root: &'v mut Value, path: &str) -> Option<Place<'v>> {
    // Whatever stands before the first slash is passed over.
    let (_, below) = path.split_once('/')?;
    let (parents, key) = below
        .rsplit_once('/')
        .map_or((None, below), |(parents, key)| (Some(parents), key));

    let mut container = Container::of(root)?;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        container = Container::of(container.into_member(&unescape(part))?)?;
    }

    Some(Place {
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

impl Place<'_> {
    pub(super) fn key(&self) -> &Text {
        &self.key
    }

    /// What is there. Only an index can be wrong: a member that is absent is as good as null.
    pub(super) fn get(&self) -> Result<Option<&Value>, PlaceError> {
        match &self.container {
            Container::Object(map) => Ok(map.get(&self.key)),
            Container::List(items) => {
                let index = within(index_of(&self.key)?, items.len())?;
                Ok(Some(&items[index]))
            }
        }
    }

    /// Sets a member, or puts an element before the one at the index. `-` is the place behind the
    /// last.
    pub(super) fn add(self, value: Value) -> Result<(), PlaceError> {
        match self.container {
            Container::Object(map) => {
                map.insert(self.key, value);
            }
            Container::List(items) if self.key == "-" => items.push(value),
            Container::List(items) => {
                let index = parse_int(&self.key).map_err(|reason| PlaceError::NoIndexToAdd {
                    key: self.key.clone(),
                    reason,
                })?;
                items.insert(within(index, items.len() + 1)?, value);
            }
        }

        Ok(())
    }

    /// Sets a member, or an element that is there.
    pub(super) fn replace(self, value: Value) -> Result<(), PlaceError> {
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

    /// Takes out what is there.
    pub(super) fn remove(self) -> Result<Value, PlaceError> {
        match self.container {
            Container::Object(map) => map.remove(&self.key).ok_or(PlaceError::NoKey(self.key)),
            Container::List(items) => {
                let index = within(index_of(&self.key)?, items.len())?;
                Ok(items.remove(index))
            }
        }
    }
}

fn index_of(key: &Text) -> Result<i64, PlaceError> {
    parse_int(key).map_err(|reason| PlaceError::NoIndex {
        key: key.clone(),
        reason,
    })
}

/// An index below `len`; a negative one counts from the end.
fn within(index: i64, len: usize) -> Result<usize, PlaceError> {
    let place = match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => usize::try_from(index.unsigned_abs())
            .ok()
            .and_then(|back| len.checked_sub(back)),
    };
    place
        .filter(|place| *place < len)
        .ok_or(PlaceError::OutOfBounds(index))
}
