//! Maps. Those that expressions make keep the order in which entries were added.

use std::collections::HashMap;
use std::sync::Arc;

use super::{TWO_TO_63, TWO_TO_64, Text, Tree, Value};
use crate::eval::EvalError;

#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// A constant of the program.
    Entries(&'a Entries<'a>),
    Shared(Arc<Entries<'a>>),
    /// An object's members.
    Tree(Tree<'a>),
}

/// The entries of a map that an expression made.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    /// Where keys are, of maps that are too large for a search.
    index: Option<HashMap<Key, usize>>,
}

/// A key that can be looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(Arc<str>),
}

/// A map up to this size has no index.
const SEARCHED: usize = 8;

/// Whether Go's maps find one key by the other: equal values of one type.
fn is_same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b && a.offset == b.offset,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        _ => false,
    }
}

impl Key {
    fn of(value: &Value<'_>) -> Option<Key> {
        match value {
            Value::Null => Some(Key::Null),
            Value::Bool(flag) => Some(Key::Bool(*flag)),
            Value::Int(number) => Some(Key::Int(*number)),
            Value::Uint(number) => Some(Key::Uint(*number)),
            // Equal numbers are equal bits, but for the two zeros.
            Value::Double(number) if *number == 0.0 => Some(Key::Double(0)),
            Value::Double(number) => Some(Key::Double(number.to_bits())),
            Value::String(Text::Shared(text)) => Some(Key::String(Arc::clone(text))),
            Value::String(Text::Borrowed(text)) => Some(Key::String((*text).into())),
            _ => None,
        }
    }
}

impl<'a> Entries<'a> {
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets an entry, in place of one with the same key.
    pub fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(at) = self.position(&key) {
            self.entries[at].1 = value;
            return;
        }

        let at = self.entries.len();
        if let Some(index) = &mut self.index
            && let Some(key) = Key::of(&key)
        {
            index.insert(key, at);
        }
        self.entries.push((key, value));
        if self.index.is_none() && self.entries.len() > SEARCHED {
            self.index = Some(self.indexed());
        }
    }

    /// Removes an entry, if it is there.
    pub fn remove(&mut self, key: &Value<'a>) {
        if let Some(at) = self.position(key) {
            self.entries.remove(at);
            self.index = (self.entries.len() > SEARCHED).then(|| self.indexed());
        }
    }

    fn indexed(&self) -> HashMap<Key, usize> {
        let keys = self.entries.iter().enumerate();
        keys.filter_map(|(at, (key, _))| Some((Key::of(key)?, at)))
            .collect()
    }

    fn position(&self, key: &Value<'_>) -> Option<usize> {
        if let Some(index) = &self.index
            && let Some(key) = Key::of(key)
        {
            return match key {
                Key::Double(bits) if f64::from_bits(bits).is_nan() => None,
                key => index.get(&key).copied(),
            };
        }
        self.entries
            .iter()
            .position(|(known, _)| is_same(known, key))
    }

    /// The value of a key. Numbers of other types find integers.
    #[must_use]
    pub fn get(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        if let Some(at) = self.position(key) {
            return Some(&self.entries[at].1);
        }
        let at = match key {
            Value::Double(number) => lossless_int(*number)
                .and_then(|number| self.position(&Value::Int(number)))
                .or_else(|| self.position(&Value::Uint(lossless_uint(*number)?))),
            Value::Int(number) => self.position(&Value::Uint(u64::try_from(*number).ok()?)),
            Value::Uint(number) => self.position(&Value::Int(i64::try_from(*number).ok()?)),
            _ => None,
        };
        at.map(|at| &self.entries[at].1)
    }
}

/// The integer that a floating-point number is, if it is one.
#[expect(clippy::cast_possible_truncation, reason = "the range is tested")]
pub(crate) fn lossless_int(number: f64) -> Option<i64> {
    let fits = number > -TWO_TO_63 && number < TWO_TO_63;
    (fits && number.fract() == 0.0).then_some(number as i64)
}

/// The same without a sign.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is tested"
)]
pub(crate) fn lossless_uint(number: f64) -> Option<u64> {
    let fits = (0.0..TWO_TO_64).contains(&number);
    (fits && number.fract() == 0.0).then_some(number as u64)
}

impl<'a> From<Entries<'a>> for Map<'a> {
    fn from(entries: Entries<'a>) -> Self {
        Map::Shared(Arc::new(entries))
    }
}

impl<'a> Map<'a> {
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Map::Entries(entries) => entries.len(),
            Map::Shared(entries) => entries.len(),
            Map::Tree(tree) => tree.len(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key, if it is there.
    pub fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Map::Entries(entries) => Ok(entries.get(key).cloned()),
            Map::Shared(entries) => Ok(entries.get(key).cloned()),
            Map::Tree(tree) => tree.find(key),
        }
    }

    /// The key at a position; none at members that the schema hides.
    #[must_use]
    pub fn key(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Map::Entries(entries) => Some(entries.entries[index].0.clone()),
            Map::Shared(entries) => Some(entries.entries[index].0.clone()),
            Map::Tree(tree) => tree.key(index),
        }
    }

    /// The key and the value at a position.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<(Value<'a>, Result<Value<'a>, EvalError>)> {
        match self {
            Map::Entries(entries) => {
                let (key, value) = entries.entries.get(index)?;
                Some((key.clone(), Ok(value.clone())))
            }
            Map::Shared(entries) => {
                let (key, value) = entries.entries.get(index)?;
                Some((key.clone(), Ok(value.clone())))
            }
            Map::Tree(tree) => tree.entry(index),
        }
    }
}
