//! JSON text that is carried, not read.

use std::sync::Arc;

/// Compact, well-formed JSON text, shared between the copies of an object.
///
/// Two raw values are equal when their texts are: whoever cares about more parses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Takes text that the caller knows to be one well-formed JSON value without white space around
    /// its tokens.
    pub(crate) fn trusted(text: &str) -> RawJson {
        RawJson(Arc::from(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What JSON calls the value: its first byte tells.
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
