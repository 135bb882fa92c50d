//! Values as messages show them.

use crate::Value;
use crate::codec::json;
use crate::go_text::{Float, Quoted};

pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => Float(*number).to_string(),
        Value::String(text) => quoted(text),
        other => as_json(other),
    }
}

pub(crate) fn as_json(value: &Value) -> String {
    json::to_string(value)
}

pub(super) fn quoted(text: &str) -> String {
    Quoted(text).to_string()
}
