//! Types of settings: how each reads a text of the command line and a value of a file.

mod collections;
mod scalars;
mod special;

use coracle_api::Value;

use crate::file::scalar;
pub use collections::{Each, Pairs};
pub use special::{OptionalText, Pattern, Patterns, PortRange, Tree};

/// A field of options that a setting sets.
pub trait Field {
    /// The type as the help shows it; `bool`: the flag needs no value.
    fn kind(&self) -> &'static str;

    /// Replaces the value.
    ///
    /// # Errors
    /// Why the text is not a value, in upstream's words.
    fn set(&mut self, text: &str) -> Result<(), String>;

    /// The flag again on the same command line: collections grow, other values are replaced.
    ///
    /// # Errors
    /// As [`Field::set`].
    fn add(&mut self, text: &str) -> Result<(), String> {
        self.set(text)
    }

    /// Replaces the value by that of a file.
    ///
    /// # Errors
    /// Which type was expected, or why the value is none.
    fn read(&mut self, value: &Value) -> Result<(), String>;

    /// The value as a file would have it; null: there is none.
    fn value(&self) -> Value;

    /// The value as upstream's `/flagz` shows it.
    fn text(&self) -> String {
        shown(&self.value())
    }
}

/// A type of one text. An `Option` of it is none when the text is empty; a `Vec` of it is a list.
pub trait Element: Sized {
    const KIND: &'static str;
    /// The kind of a list.
    const LIST: &'static str = "strings";

    /// # Errors
    /// Why the text is not a value, in upstream's words.
    fn parse(text: &str) -> Result<Self, String>;

    /// # Errors
    /// Which type was expected, or why the value is none.
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Self::parse(text),
            _ => Err(mismatch("a string", value)),
        }
    }

    /// The value as a file would have it.
    fn to_value(&self) -> Value;
}

/// How upstream's flags print a value: `[a,b]`, `a=b,c=d`.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(name, value)| format!("{name}={}", shown(value)));
            entries.collect::<Vec<_>>().join(",")
        }
        plain => scalar(plain).unwrap_or_default(),
    }
}

pub(crate) fn mismatch(expected: &str, found: &Value) -> String {
    format!("expected {expected}, got {}", found.type_name())
}
