//! The tree representation of objects.
//!
//! A [`Value`] is JSON as Kubernetes defines it: numbers are 64-bit integers or floats, the members
//! of an object are unique and sorted by name (so that equal objects have equal bytes), and untyped
//! values (`RawExtension`, `FieldsV1`, a CRD's defaults) keep their text. Trees are created by the
//! codecs (`crate::codec`) and walked along a catalogue type; nothing here knows types.

mod map;
mod path;
mod presence;
mod raw;
pub(crate) mod search_key;

pub use map::Map;
pub use path::Path;
pub use raw::RawJson;
pub(crate) use search_key::SearchKey;

/// A string without allocation up to 24 bytes, or for literals.
pub type Text = compact_str::CompactString;

/// The text of some bytes; invalid UTF-8 becomes U+FFFD.
pub(crate) fn text_of(bytes: &[u8]) -> Text {
    match std::str::from_utf8(bytes) {
        Ok(text) => Text::new(text),
        Err(_) => Text::new(String::from_utf8_lossy(bytes)),
    }
}

/// One JSON value.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Text),
    /// The JSON text of an untyped value.
    Raw(RawJson),
    Array(Vec<Value>),
    Object(Map),
}

impl Value {
    /// A string value.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(Text::new(text))
    }

    /// `{}`.
    pub fn object() -> Value {
        Value::Object(Map::new())
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The value as an integer, if it is written as one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The member `name`, if this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    /// The value below this one at a path of member names.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// Takes the value and leaves null.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// The JSON type name, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Raw(raw) => raw.type_name(),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Int(i64::from(number))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(Text::from(text))
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Value {
        Value::String(text)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Object(map)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::Array(items)
    }
}
