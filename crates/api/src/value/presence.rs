//! Accessors for members with the semantics of upstream's structs.
//!
//! A string, number, boolean, list or struct that is absent or null has its zero value; a pointer
//! that is absent or null is nil, and a pointer to a zero value is not. Code that decides by fields
//! uses these, so that the two are not confused.

use super::{Map, Text, Value};

impl Map {
    /// Present and not null: a pointer that is not nil.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.is_null())
    }

    /// The string; empty by default.
    pub fn text(&self, name: &str) -> &str {
        self.str(name).unwrap_or_default()
    }

    /// The integer; 0 by default.
    pub fn int(&self, name: &str) -> i64 {
        self.get(name).and_then(Value::as_int).unwrap_or_default()
    }

    /// The boolean; false by default.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The elements of a list; empty by default.
    pub fn items(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).unwrap_or_default()
    }

    /// The elements of a list of structs; a null counts as an empty one.
    pub fn structs_mut(&mut self, name: &str) -> impl Iterator<Item = &mut Map> {
        let items = self
            .get_mut(name)
            .and_then(Value::as_array_mut)
            .map(Vec::as_mut_slice);
        items.unwrap_or_default().iter_mut().filter_map(|item| {
            if item.is_null() {
                *item = Value::object();
            }
            item.as_object_mut()
        })
    }

    /// The struct or map, if present.
    pub fn below(&self, name: &str) -> Option<&Map> {
        self.get(name)?.as_object()
    }

    /// The struct or map, if present.
    pub fn below_mut(&mut self, name: &str) -> Option<&mut Map> {
        self.get_mut(name)?.as_object_mut()
    }

    /// Sets a pointer that is nil.
    pub fn set_if_nil(&mut self, name: &'static str, value: impl Into<Value>) {
        if !self.is_set(name) {
            self.insert(Text::const_new(name), value);
        }
    }

    /// Sets a string that is empty.
    pub fn set_if_empty(&mut self, name: &'static str, text: &'static str) {
        if self.text(name).is_empty() {
            self.insert(Text::const_new(name), Text::const_new(text));
        }
    }
}
