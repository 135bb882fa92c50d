//! Raw JSON: validated text that is not parsed into a tree.

use std::sync::Arc;

/// Compact, well-formed JSON text, shared between the copies of an object.
///
/// Two raw values are equal when their texts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Takes text that the caller knows to be one well-formed, compact JSON value.
    pub(crate) fn trusted(text: &str) -> RawJson {
        RawJson(Arc::from(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The JSON type name, from the first byte.
    pub fn type_name(&self) -> &'static str {
        match self.0.as_bytes().first() {
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b'"') => "string",
            Some(b't' | b'f') => "bool",
            Some(b'n') => "null",
            _ => "number",
        }
    }
}
