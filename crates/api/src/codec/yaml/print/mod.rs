//! Encodes a value as YAML in block style.
//!
//! Collections are written from an explicit stack of pending work, so nesting does not recurse;
//! scalars by [`writer`], in the style that [`style`] selects. Names are sorted naturally
//! ([`order`]): `a2` before `a10`.

mod order;
mod style;
mod writer;

use super::number;
use crate::codec::json;
use crate::value::{RawJson, Value};
use writer::Writer;

/// The text of a value, with a line feed at its end.
pub fn print(value: &Value) -> String {
    let mut writer = Writer::new();
    node(&mut writer, value, false);
    writer.indent_line();
    writer.finish()
}

/// Pending work.
enum Todo<'v> {
    Node(&'v Value, /* behind a key */ bool),
    Item(&'v Value),
    Member(&'v str, &'v Value),
    /// The end of a collection, and the indentation around it.
    Dedent(Option<usize>),
}

fn node(writer: &mut Writer, root: &Value, member: bool) {
    let mut todo = vec![Todo::Node(root, member)];
    while let Some(next) = todo.pop() {
        match next {
            Todo::Node(value, member) => content(writer, &mut todo, value, member),
            Todo::Item(value) => {
                writer.indent_line();
                writer.dash();
                todo.push(Todo::Node(value, false));
            }
            Todo::Member(name, value) => {
                writer.indent_line();
                writer.key(name);
                todo.push(Todo::Node(value, true));
            }
            Todo::Dedent(indent) => writer.set_indent(indent),
        }
    }
}

fn content<'v>(writer: &mut Writer, todo: &mut Vec<Todo<'v>>, value: &'v Value, member: bool) {
    match value {
        Value::Null => writer.word("null"),
        Value::Bool(flag) => writer.word(if *flag { "true" } else { "false" }),
        Value::Int(number) => writer.word(&number.to_string()),
        Value::Float(number) => writer.word(&number::print_from_json(*number)),
        Value::String(text) => writer.string(text),
        // A raw value never contains another, so this recurses once.
        Value::Raw(raw) => node(writer, &raw_value(raw), member),
        Value::Array(items) if items.is_empty() => writer.word("[]"),
        Value::Object(map) if map.is_empty() => writer.word("{}"),
        Value::Array(items) => {
            todo.push(Todo::Dedent(writer.indent()));
            // The dashes of a list are in the column of the key it belongs to.
            if !member || writer.line_is_indentation() {
                writer.deepen();
            }
            todo.extend(items.iter().rev().map(Todo::Item));
        }
        Value::Object(map) => {
            todo.push(Todo::Dedent(writer.indent()));
            writer.deepen();
            todo.extend(
                order::sorted(map)
                    .into_iter()
                    .rev()
                    .map(|(name, value)| Todo::Member(name, value)),
            );
        }
    }
}

/// The value of a raw text. Text that is not JSON is printed as a string.
fn raw_value(raw: &RawJson) -> Value {
    json::parse(raw.as_str().as_bytes()).unwrap_or_else(|_| Value::string(raw.as_str()))
}
