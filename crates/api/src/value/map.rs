//! The members of a JSON object, sorted by name.
//!
//! A sorted vector: small, one allocation, and equal objects are equal sequences. Look-ups are
//! binary searches; an insertion moves the members after it, so decoders collect members first and
//! convert them at once ([`Map::from_members`]).

use super::{SearchKey, Text, Value};
use crate::fuzz::steps;

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Map {
    members: Vec<(Text, Value)>,
}

impl Map {
    pub const fn new() -> Map {
        Map {
            members: Vec::new(),
        }
    }

    pub fn with_capacity(capacity: usize) -> Map {
        Map {
            members: Vec::with_capacity(capacity),
        }
    }

    /// Members in any order; of duplicates the last is kept. Sorts only if they are out of order.
    pub fn from_members(mut members: Vec<(Text, Value)>) -> Map {
        steps::count(members.len());

        if !members.is_sorted_by(|a, b| a.0 < b.0) {
            // Stable, and reversed first: the last of equal names comes first, and `dedup` keeps
            // the first.
            members.reverse();
            members.sort_by(|a, b| {
                steps::count(1);
                a.0.cmp(&b.0)
            });
            members.dedup_by(|later, first| later.0 == first.0);
        }

        Map { members }
    }

    /// Members that are sorted by name and unique.
    pub(crate) fn from_sorted(members: Vec<(Text, Value)>) -> Map {
        debug_assert!(
            members.is_sorted_by(|a, b| a.0 < b.0),
            "members are out of order"
        );
        Map { members }
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.find(name).ok().map(|index| &self.members[index].1)
    }

    /// The name and the value of the member at an index.
    pub fn at(&self, index: usize) -> Option<(&str, &Value)> {
        let (name, value) = self.members.get(index)?;
        Some((name, value))
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.find(name).ok().map(|index| &mut self.members[index].1)
    }

    /// The member's text, if it is a string.
    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Sets a member and returns its previous value.
    pub fn insert(&mut self, name: impl Into<Text>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.find(&name) {
            Ok(index) => Some(std::mem::replace(&mut self.members[index].1, value)),
            Err(index) => {
                self.members.insert(index, (name, value));
                None
            }
        }
    }

    /// The member, created by `make` if it is absent.
    pub fn get_or_insert_with(&mut self, name: &str, make: impl FnOnce() -> Value) -> &mut Value {
        let index = match self.find(name) {
            Ok(index) => index,
            Err(index) => {
                self.members.insert(index, (Text::new(name), make()));
                index
            }
        };
        &mut self.members[index].1
    }

    /// The member as an object; anything else is replaced by `{}` first.
    pub fn object_mut(&mut self, name: &str) -> &mut Map {
        let value = self.get_or_insert_with(name, Value::object);
        if !matches!(value, Value::Object(_)) {
            *value = Value::object();
        }
        value.as_object_mut().expect("made an object just above")
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.find(name)
            .ok()
            .map(|index| self.members.remove(index).1)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.members.retain_mut(|(name, value)| keep(name, value));
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + DoubleEndedIterator {
        self.members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        self.members
            .iter_mut()
            .map(|(name, value)| (name.as_str(), value))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members.iter().map(|(name, _)| name.as_str())
    }

    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.members.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Value> {
        self.members.iter_mut().map(|(_, value)| value)
    }

    /// The members as a sorted vector.
    pub fn into_members(self) -> Vec<(Text, Value)> {
        self.members
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        let key = SearchKey::new(name);
        self.members
            .binary_search_by(|(member, _)| key.compare(member))
    }
}

impl FromIterator<(Text, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(members: I) -> Map {
        Map::from_members(members.into_iter().collect())
    }
}

impl IntoIterator for Map {
    type Item = (Text, Value);
    type IntoIter = std::vec::IntoIter<(Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(names: &[(&str, i64)]) -> Map {
        names
            .iter()
            .map(|(name, number)| (Text::new(name), Value::Int(*number)))
            .collect()
    }

    #[test]
    fn members_are_sorted_and_the_last_of_equal_names_is_kept() {
        let map = map(&[("b", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)]);
        assert_eq!(map.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(map.get("a"), Some(&Value::Int(4)));
        assert_eq!(map.get("b"), Some(&Value::Int(3)));
    }

    #[test]
    fn equal_neighbours_in_order_are_one_member() {
        assert_eq!(map(&[("a", 1), ("a", 2)]), map(&[("a", 2)]));
    }

    #[test]
    fn insert_remove_and_default_keep_the_order() {
        let mut map = map(&[("b", 1)]);
        assert_eq!(map.insert("a", 2i64), None);
        assert_eq!(map.insert("b", 3i64), Some(Value::Int(1)));
        map.object_mut("aa").insert("x", true);
        assert_eq!(map.keys().collect::<Vec<_>>(), ["a", "aa", "b"]);
        assert_eq!(map.remove("a"), Some(Value::Int(2)));
        assert_eq!(map.remove("a"), None);
        assert_eq!(map.len(), 2);
    }
}
