//! Values inside error texts, in Go's notation.

use super::number;
use super::resolve::Resolved;
use crate::go_text::Quoted;
use crate::value::Value;

/// A key in its error message.
pub(super) fn key(key: &Resolved<'_>) -> String {
    match key {
        Resolved::Null => "<nil>".to_owned(),
        Resolved::Bool(flag) => flag.to_string(),
        Resolved::Int(number) => number.to_string(),
        Resolved::Uint(number) => format!("{number:#x}"),
        Resolved::Float(number) => number::print_in_message(*number),
        Resolved::Text(text) => Quoted(text).to_string(),
    }
}

/// A value on its own.
pub(super) fn lone_value(lone: &Value) -> String {
    if lone.is_null() {
        "<nil>".to_owned()
    } else {
        value(lone)
    }
}

/// A value inside another.
pub(super) fn value(root: &Value) -> String {
    enum Part<'v> {
        Value(&'v Value),
        Key(&'v str),
        Text(&'static str),
    }

    let mut message = String::new();
    let mut parts = vec![Part::Value(root)];
    while let Some(part) = parts.pop() {
        match part {
            Part::Text(text) => message.push_str(text),
            Part::Key(key) => message.push_str(&format!("{}:", Quoted(key))),
            Part::Value(Value::Null) => message.push_str("interface {}(nil)"),
            Part::Value(Value::Bool(flag)) => {
                message.push_str(if *flag { "true" } else { "false" })
            }
            Part::Value(Value::Int(number)) => message.push_str(&number.to_string()),
            Part::Value(Value::Float(number)) => {
                message.push_str(&number::print_in_message(*number))
            }
            Part::Value(Value::String(text)) => message.push_str(&Quoted(text).to_string()),
            Part::Value(Value::Raw(raw)) => message.push_str(raw.as_str()),
            Part::Value(Value::Array(items)) => {
                message.push_str("[]interface {}{");
                parts.push(Part::Text("}"));
                for (index, item) in items.iter().enumerate().rev() {
                    parts.push(Part::Value(item));
                    parts.push(Part::Text(if index == 0 { "" } else { ", " }));
                }
            }
            Part::Value(Value::Object(map)) => {
                message.push_str("map[interface {}]interface {}{");
                parts.push(Part::Text("}"));
                for (index, (key, value)) in map.iter().enumerate().rev() {
                    parts.push(Part::Value(value));
                    parts.push(Part::Key(key));
                    parts.push(Part::Text(if index == 0 { "" } else { ", " }));
                }
            }
        }
    }

    message
}
